/** A fenced block of a Markdown file. */
export interface Block {
  /** Of its opening fence, from 1. */
  readonly line: number;
  /** After the fence: "ts", "text", "" … */
  readonly info: string;
  readonly text: string;
  /** What `<!-- from: FILE#REGION -->` in the line before names. */
  readonly origin: Origin | undefined;
}

/** Where a block is taken from; without a region, the whole file. */
export interface Origin {
  readonly file: string;
  readonly region: string | undefined;
}

const FENCE = /^( *)(`{3,}|~{3,})(.*)$/;
const FROM = /^ *<!-- from: ([^#\s]+)(?:#(\S+))? -->$/;
const TABLE = /^<!-- table: (\S+) -->$/;
const END = "<!-- end -->";

/** Every fenced block, in order. */
export function blocksOf(markdown: string): readonly Block[] {
  const blocks: Block[] = [];
  walk(markdown, (block) => {
    blocks.push(block);
    return block;
  });
  return blocks;
}

export interface Replacements {
  /** The block that belongs there instead of one with an origin. */
  block(origin: Origin): { readonly info: string; readonly text: string };
  table(name: string): string;
}

/** The same document with every block that has an origin, and every table, made anew. */
export function rewrite(markdown: string, replacements: Replacements): string {
  const withBlocks = walk(markdown, (block) => {
    return block.origin === undefined ? block : replacements.block(block.origin);
  });
  return withTables(withBlocks, replacements);
}

/** Goes through the lines once; what `visit` gives for a block takes its place. */
function walk(markdown: string, visit: (block: Block) => { readonly info: string; readonly text: string }): string {
  const lines = markdown.split("\n");
  const written: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!;
    const [, indent, fence, info] = line.match(FENCE) ?? [];
    if (indent === undefined || fence === undefined || info === undefined) {
      written.push(line);
      continue;
    }
    const end = lines.findIndex((each, index) => index > at && each.trim() === fence);
    if (end === -1) throw new Error(`line ${at + 1}: the block is not closed`);
    const text = lines.slice(at + 1, end).map((each) => (each.startsWith(indent) ? each.slice(indent.length) : each));
    const block = visit({
      line: at + 1,
      info: info.trim(),
      text: text.join("\n"),
      origin: originIn(lines[at - 1] ?? ""),
    });
    const body = block.text === "" ? [] : block.text.split("\n").map((each) => (each === "" ? "" : indent + each));
    written.push(`${indent}${fence}${block.info}`, ...body, indent + fence);
    at = end;
  }
  return written.join("\n");
}

function originIn(line: string): Origin | undefined {
  const [, file, region] = line.match(FROM) ?? [];
  return file === undefined ? undefined : { file, region };
}

function withTables(markdown: string, { table }: Replacements): string {
  const lines = markdown.split("\n");
  const written: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!;
    written.push(line);
    const name = line.match(TABLE)?.[1];
    if (name === undefined) continue;
    const end = lines.indexOf(END, at);
    if (end === -1) throw new Error(`line ${at + 1}: the table ${name} has no ${END}`);
    written.push("", table(name), "", END);
    at = end;
  }
  return written.join("\n");
}
