// A line between a browser and a server that can be cut and mended: a proxy.
import { once } from "node:events";
import { createServer, request as ask } from "node:http";

export class Line {
  #sockets = new Set();
  #isCut = false;

  static async open() {
    const line = new Line();
    line.server = createServer((request, response) => line.#carry(request, response));
    line.server.on("connection", (socket) => {
      if (line.#isCut) socket.destroy();
      line.#sockets.add(socket);
      socket.on("close", () => line.#sockets.delete(socket)).on("error", () => {});
    });
    line.server.listen(0, "127.0.0.1");
    await once(line.server, "listening");
    line.address = `http://127.0.0.1:${line.server.address().port}`;
    return line;
  }

  #carry(request, response) {
    const { hostname, port, pathname, search } = new URL(request.url);
    const onward = ask({ hostname, port, path: pathname + search, method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  }

  cut() {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend() {
    this.#isCut = false;
  }

  async close() {
    this.cut();
    this.server.close();
    await once(this.server, "close");
  }
}
