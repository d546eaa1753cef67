import { createRequire } from "node:module";
import { Language, Parser } from "web-tree-sitter";

/** The grammars, by the names of the npm packages that ship them as WASM. */
const GRAMMARS = {
  python: "tree-sitter-python/tree-sitter-python.wasm",
  javascript: "tree-sitter-javascript/tree-sitter-javascript.wasm",
  typescript: "tree-sitter-typescript/tree-sitter-typescript.wasm",
  bash: "tree-sitter-bash/tree-sitter-bash.wasm",
} as const;

type Grammar = keyof typeof GRAMMARS;

const { resolve } = createRequire(import.meta.url);
const loading = new Map<Grammar, Promise<Parser>>();
let runtime: Promise<void> | undefined;

/** A parser of one language. Each grammar is loaded once in a process, when it is first asked for. */
export function parserOf(grammar: Grammar): Promise<Parser> {
  const known = loading.get(grammar);
  if (known !== undefined) return known;
  const parser = load(grammar);
  loading.set(grammar, parser);
  // A failure (no such file, out of memory) is not kept: the next call tries again.
  parser.catch(() => loading.delete(grammar));
  return parser;
}

async function load(grammar: Grammar): Promise<Parser> {
  runtime ??= Parser.init();
  await runtime;
  const language = await Language.load(resolve(GRAMMARS[grammar]));
  return new Parser().setLanguage(language);
}
