import { open } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import { type GivenValue, isSetting, ROOT_SECTION, type Section, type Source } from "./keys.ts";
import { ConfigurationError, shown, suggestion } from "./problems.ts";
import type { Setting } from "./values.ts";

const LARGEST_FILE = 1_048_576;
/** Nodes looked at, those behind aliases each time: a few lines of aliases can stand for millions. */
const MOST_NODES = 10_000;

export async function readConfigurationFile(path: string): Promise<Source> {
  return parseConfigurationFile(await readText(path), path);
}

/** The settings in the text of a YAML file, each with its line. Sections may be empty; values may not. */
function parseConfigurationFile(text: string, path: string): Source {
  const fileName = basename(path);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, version: "1.2", merge: false });
  const complaints = [...document.errors, ...document.warnings];
  if (complaints.length > 0) {
    const problems = complaints.map(({ message, pos }) => {
      const { line } = lines.linePos(pos[0]);
      return `${fileName}:${line}: ${message.split(/ at line |:\n/)[0]}`;
    });
    return { values: [], problems };
  }
  const reading = new FileReading(document, lines, path);
  if (document.contents !== null) reading.readSection(ROOT_SECTION, [], document.contents);
  return reading;
}

class FileReading implements Source {
  readonly values: GivenValue[] = [];
  readonly problems: string[] = [];
  readonly #document: Document.Parsed;
  readonly #lines: LineCounter;
  readonly #fileName: string;
  readonly #directory: string;
  #nodesLeft = MOST_NODES;

  constructor(document: Document.Parsed, lines: LineCounter, path: string) {
    this.#document = document;
    this.#lines = lines;
    this.#fileName = basename(path);
    this.#directory = dirname(path);
  }

  readSection(section: Section, path: readonly string[], node: Node): void {
    const content = this.#resolve(node);
    if (isScalar(content) && content.value === null) return;
    if (!isMap(content)) {
      const what = path.length === 0 ? "the file" : path.join(".");
      this.#complain(node, `${what}: expected a section with keys, not ${shown(this.#plain(content))}`);
      return;
    }
    for (const { key, value } of content.items) {
      const name = isScalar(key) ? String(key.value) : shown(this.#plain(key as Node));
      const member = isScalar(key) && Object.hasOwn(section, name) ? section[name] : undefined;
      const place = [...path, name];
      if (member === undefined) {
        this.#complain(key as Node, `unknown key ${place.join(".")}${suggestion(name, Object.keys(section))}`);
      } else if (isSetting(member)) this.#readValue(member, place.join("."), key as Node, value as Node | null);
      else this.readSection(member, place, (value ?? key) as Node);
    }
  }

  #readValue(setting: Setting, name: string, keyNode: Node, node: Node | null): void {
    const plain = node === null ? null : this.#plain(this.#resolve(node));
    // An empty value would otherwise be the default, while it looks like "nothing" or "none".
    if (plain === null) this.#complain(keyNode, `${name}: has no value; expected ${setting.expects}`);
    else {
      const origin = `file ${this.#fileName}:${this.#lineOf(node ?? keyNode)}`;
      const isPlace = setting.isPath && typeof plain === "string" && plain !== "";
      // Where the server was started from says nothing about where its files are.
      this.values.push({ name, value: isPlace ? resolve(this.#directory, plain) : plain, origin });
    }
  }

  #complain(node: Node, problem: string): void {
    this.problems.push(`${this.#fileName}:${this.#lineOf(node)}: ${problem}`);
  }

  #lineOf(node: Node): number {
    return this.#lines.linePos(node.range?.[0] ?? 0).line;
  }

  #resolve(node: Node): Node {
    this.#countNode();
    if (!isAlias(node)) return node;
    const target = node.resolve(this.#document);
    if (target === undefined) throw new ConfigurationError([`${this.#fileName}: *${node.source} stands for nothing`]);
    return target;
  }

  /** A value without its nodes. No value of ours has lists in lists or keys of its own: an empty one of either is enough. */
  #plain(node: Node, depth = 0): unknown {
    if (isScalar(node)) return node.value;
    if (!isSeq(node)) return {};
    return depth > 0 ? [] : node.items.map((item) => this.#plain(this.#resolve(item as Node), depth + 1));
  }

  #countNode(): void {
    this.#nodesLeft -= 1;
    if (this.#nodesLeft < 0)
      throw new ConfigurationError([`${this.#fileName}: too many values, or aliases that multiply`]);
  }
}

async function readText(path: string): Promise<string> {
  try {
    await using file = await open(path, "r");
    const status = await file.stat();
    if (!status.isFile()) throw new ConfigurationError([`${path}: is not a file`]);
    if (status.size > LARGEST_FILE) throw new ConfigurationError([`${path}: is larger than a configuration can be`]);
    return await file.readFile("utf8");
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    throw new ConfigurationError([`cannot read the configuration: ${(error as Error).message}`]);
  }
}
