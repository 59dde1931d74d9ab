// The hostile texts that the HTML export is tried with: one corpus for both.
import { readFile } from "node:fs/promises";

const SOURCE = new URL("../../../backtrail-cli/tests/cli/export.rs", import.meta.url);
const ESCAPES = { n: "\n", t: "\t", r: "\r", "0": "\0", '"': '"', "'": "'", "\\": "\\" };

const unescaped = (text) => text
  .replace(/\\u\{([0-9a-f]+)\}|\\(.)/g, (_, digits, letter) => (digits ? String.fromCodePoint(parseInt(digits, 16)) : ESCAPES[letter]));

// Returns the texts, which call a port of this machine if they run.
export const hostile = async (port) => {
  const source = await readFile(SOURCE, "utf8");
  const [, list] = /const HOSTILE: \[&str; \d+\] = \[\n(.*?)\n\];/s.exec(source);
  const [, count] = /const HOSTILE: \[&str; (\d+)\]/.exec(source);
  const texts = list.split("\n").map((line) => unescaped(/^ *"(.*)",$/.exec(line)[1]).replaceAll("PORT", String(port)));
  if (texts.length !== Number(count)) throw new Error(`${texts.length} hostile texts, not ${count}`);
  return texts;
};
