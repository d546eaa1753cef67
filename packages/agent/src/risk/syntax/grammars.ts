import { fileURLToPath } from "node:url";
import { Language, Parser } from "web-tree-sitter";

/** Where the grammars are. The build takes these files, and nothing else of their packages, into ours. */
const GRAMMARS = {
  python: () => import.meta.resolve("tree-sitter-python/tree-sitter-python.wasm"),
  javascript: () => import.meta.resolve("tree-sitter-javascript/tree-sitter-javascript.wasm"),
  typescript: () => import.meta.resolve("tree-sitter-typescript/tree-sitter-typescript.wasm"),
  bash: () => import.meta.resolve("tree-sitter-bash/tree-sitter-bash.wasm"),
} as const;

type Grammar = keyof typeof GRAMMARS;

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
  const language = await Language.load(fileURLToPath(GRAMMARS[grammar]()));
  return new Parser().setLanguage(language);
}
