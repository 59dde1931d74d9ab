// Another origin: a server of the test's own that counts who calls it.
import { once } from "node:events";
import { createServer } from "node:http";

export class Elsewhere {
  calls = [];

  static async open(html = "") {
    const elsewhere = new Elsewhere();
    elsewhere.server = createServer((request, response) => {
      elsewhere.calls.push(request.url);
      response.writeHead(200, { "content-type": "text/html" });
      response.end(html);
    });
    elsewhere.server.listen(0, "127.0.0.1");
    await once(elsewhere.server, "listening");
    elsewhere.port = elsewhere.server.address().port;
    elsewhere.origin = `http://127.0.0.1:${elsewhere.port}`;
    return elsewhere;
  }

  async close() {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }
}
