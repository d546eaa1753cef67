import { open } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import { ConfigurationError, type GivenValue, isSetting, ROOT_SECTION, type Section, type Source } from "./keys.ts";
import { shown, suggestion } from "./wording.ts";

const LARGEST_FILE = 1_048_576;
/** Nodes looked at, those behind aliases each time: a few lines of aliases can stand for millions. */
const MOST_NODES = 10_000;
/** Templates have rules, which have members. */
const DEEPEST = 6;

/** The settings in a YAML file, each with its line. Sections may be empty; values may not. */
export async function readConfigurationFile(path: string): Promise<Source> {
  const text = await readText(path);
  const fileName = basename(path);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, version: "1.2", merge: false });
  const values: GivenValue[] = [];
  const problems = [...document.errors, ...document.warnings].map(
    ({ message, pos }) => `${fileName}:${lines.linePos(pos[0]).line}: ${message.split(/ at line |:\n/)[0]}`,
  );
  let nodesLeft = MOST_NODES;

  const placeOf = (node: Node): string => `${fileName}:${lines.linePos(node.range?.[0] ?? 0).line}`;
  const complain = (node: Node, problem: string): void => {
    problems.push(`${placeOf(node)}: ${problem}`);
  };
  const resolved = (node: Node): Node => {
    nodesLeft -= 1;
    if (nodesLeft < 0) throw new ConfigurationError([`${fileName}: too many values, or aliases that multiply`]);
    const target = isAlias(node) ? node.resolve(document) : node;
    if (target !== undefined) return target;
    throw new ConfigurationError([`${fileName}: ${String(node)} stands for nothing`]);
  };
  /** A value without its nodes. What is deeper than any value of ours is left out: it is refused all the same. */
  const plain = (node: Node, depth = 0): unknown => {
    if (isScalar(node)) return node.value;
    if (isSeq(node)) return depth > DEEPEST ? [] : node.items.map((item) => plain(resolved(item as Node), depth + 1));
    if (!isMap(node) || depth > DEEPEST) return {};
    const members = node.items.map(({ key, value }) => {
      const name = isScalar(key) ? String(key.value) : shown(plain(key as Node, DEEPEST));
      return [name, value === null ? null : plain(resolved(value as Node), depth + 1)] as const;
    });
    return Object.fromEntries(members);
  };

  const readSection = (section: Section, at: readonly string[], node: Node): void => {
    const content = resolved(node);
    if (isScalar(content) && content.value === null) return;
    if (!isMap(content)) {
      const what = at.length === 0 ? "the file" : at.join(".");
      complain(node, `${what}: expected a section with keys, not ${shown(plain(content))}`);
      return;
    }
    for (const pair of content.items) {
      const [key, value] = [pair.key as Node, pair.value as Node | null];
      const name = isScalar(key) ? String(key.value) : shown(plain(key));
      const full = [...at, name].join(".");
      const member = isScalar(key) && Object.hasOwn(section, name) ? section[name] : undefined;
      if (member === undefined) {
        complain(key, `unknown key ${full}${suggestion(name, Object.keys(section))}`);
      } else if (!isSetting(member)) {
        readSection(member, [...at, name], value ?? key);
      } else {
        const given = value === null ? null : plain(resolved(value));
        // An empty value would otherwise be the default, while it looks like "nothing" or "none".
        if (given === null) complain(key, `${full}: has no value; expected ${member.expects}`);
        else values.push({ name: full, value: placed(given, member), origin: `file ${placeOf(value ?? key)}` });
      }
    }
  };
  // Where the server was started from says nothing about where its files are.
  const placed = (given: unknown, { isPath }: { readonly isPath?: true }): unknown =>
    isPath && typeof given === "string" && given !== "" ? resolve(dirname(path), given) : given;

  if (problems.length === 0 && document.contents !== null) readSection(ROOT_SECTION, [], document.contents);
  return { values, problems };
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
