import type { Node, Pair, YAMLMap } from "yaml";

interface Place {
  readonly line: number;
  readonly column: number;
}

/** The value of a YAML text, and where its parts stand. */
export interface YamlText {
  readonly value: unknown;
  /** Where a part of the value stands (`["permissions", 2]`), or its key; for what is behind an alias, the alias. */
  placeOf(path: readonly (string | number)[], part?: "key" | "value"): Place;
}

/**
 * Reads YAML (and so JSON) of unknown origin: one document, no unknown tags, no key twice, and aliases that stand for no
 * more than a bounded multiple of the text.
 */
export async function parseYaml(text: string): Promise<YamlText> {
  // Loaded when there is a text: most projects have none, and this is more to load than all the rest of the package.
  const { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } = await import("yaml");
  const lines = new LineCounter();
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  // Its own search for keys that are there twice takes quadratic time.
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false, version: "1.2", merge: false });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw new YamlError(sentenceOf(problem.message), placeAt(problem.pos[0]));

  visit(document, {
    Map: (_key, map) => {
      const twice = keysOf(map).filter(isScalar).find(isRepeated());
      if (twice !== undefined) throw new YamlError(`the key ${twice.value} is there twice`, placeAt(offsetOf(twice)));
    },
    Alias: (_key, alias) => {
      // An alias inside what it stands for would make a value without an end.
      const target = alias.resolve(document);
      if (target === undefined || (target.range?.[2] ?? 0) > offsetOf(alias)) {
        throw new YamlError(
          `*${alias.source} stands for nothing; a text that begins with * needs quotes: "**/*"`,
          placeAt(offsetOf(alias)),
        );
      }
    },
  });
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    if (error instanceof ReferenceError) throw new YamlError("aliases that multiply", placeAt(0));
    throw error;
  }
  return {
    value,
    placeOf(path, part = "value") {
      let node = document.contents as Node | null;
      let offset = node === null ? 0 : offsetOf(node);
      for (const step of path) {
        const pair = isMap(node)
          ? (node.items.find(({ key }) => isScalar(key) && key.value === step) as Pair)
          : undefined;
        const item = isSeq(node) && typeof step === "number" ? (node.items[step] as Node) : undefined;
        const next = (pair === undefined ? item : pair.value) as Node | null | undefined;
        const shown = pair !== undefined && (part === "key" || !next) ? (pair.key as Node) : next;
        if (!shown) break;
        offset = offsetOf(shown);
        if (!next || isAlias(next)) break;
        node = next;
      }
      return placeAt(offset);
    },
  };
}

function offsetOf(node: Node): number {
  return node.range?.[0] ?? 0;
}

function keysOf(map: YAMLMap): unknown[] {
  return map.items.map(({ key }) => key);
}

/** Whether a key is like one that was asked about before. */
function isRepeated(): (key: { readonly value: unknown }) => boolean {
  const seen = new Set<unknown>();
  return ({ value }) => seen.size === seen.add(value).size;
}

/** What the parser says, without the place that we tell ourselves and the excerpt below it. */
function sentenceOf(message: string): string {
  const [sentence = message] = message.split(/ at line \d+|:\n/);
  return sentence.startsWith("Maximum call stack") ? "lists or maps in one another, too deep" : sentence;
}

/** A mistake in a text, and where it is; lines and columns count from 1. */
export class YamlError extends Error {
  override readonly name = "YamlError";
  readonly line: number;
  readonly column: number;

  constructor(message: string, place: { readonly line: number; readonly column: number }) {
    super(message);
    this.line = place.line;
    this.column = place.column;
  }
}

/** The policy file of a project cannot be used. The message begins with the file and, where there is one, the place. */
export class ProjectPolicyError extends Error {
  override readonly name = "ProjectPolicyError";
  readonly path: string;
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** What to do about it. */
  readonly hint: string | undefined;

  constructor(
    path: string,
    problem: string,
    more: { readonly line?: number; readonly column?: number; readonly hint?: string; readonly cause?: unknown } = {},
  ) {
    const place = more.line === undefined ? "" : `:${more.line}:${more.column}`;
    super(`${path}${place}: ${problem}`, more.cause === undefined ? {} : { cause: more.cause });
    this.path = path;
    this.line = more.line;
    this.column = more.column;
    this.hint = more.hint;
  }
}
