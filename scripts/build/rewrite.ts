// What the compiler leaves as it is in the source. It rewrites the `.ts` of imports in JavaScript, but neither in
// declarations nor in URLs of threads, and it keeps JSON modules, at which Node 20 prints a warning.

const JSON_IMPORT = /^import (\w+) from "([^"]+\.json)" with \{ type: "json" \};$/gm;
const THREAD = /(new URL\(\s*"\.{1,2}\/[^"]+)\.ts(",\s*import\.meta\.url)/g;
const WASM = /import\.meta\.resolve\("((?:@[^/"]+\/)?[^/"]+)\/([^"]*?)([^/"]+\.wasm)"\)/g;
const DECLARATION_IMPORT = /(\b(?:from|import)\s*\(?\s*"\.{1,2}\/[^"]+)\.ts"/g;

/** JavaScript that needs no TypeScript and no JSON, and that has the WASM it uses beside it. */
export function rewriteJavaScript(text: string, readJson: (specifier: string) => unknown): string {
  return text
    .replace(THREAD, "$1.js$2")
    .replace(WASM, 'new URL("./$3", import.meta.url).href')
    .replace(JSON_IMPORT, (_, name: string, specifier: string) => {
      return `const ${name} = ${JSON.stringify(readJson(specifier), undefined, 2)};`;
    });
}

/** A WASM file of another package. */
export interface ForeignWasm {
  readonly package: string;
  /** Inside the package. */
  readonly path: string;
  /** What it is called beside the file that uses it. */
  readonly name: string;
}

/** The WASM files that a file finds in other packages: most of what such a package ships is not needed to use it. */
export function foreignWasm(text: string): ForeignWasm[] {
  return [...text.matchAll(WASM)].map(([, from, folder, name]) => {
    return { package: from!, path: `${folder}${name}`, name: name! };
  });
}

/** Declarations that name the JavaScript they declare, as the published files do. */
export function rewriteDeclarations(text: string): string {
  return text.replace(DECLARATION_IMPORT, '$1.js"');
}

/** A README whose links to other files of the repository, which are not published, are plain text. */
export function rewriteReadme(text: string): string {
  return text.replace(/(?<![!\w])\[([^\]]+)\]\((?![a-z]+:|#)[^)]*\)/g, "$1");
}

/** The other files that a compiled file names: imports and `new URL(…, import.meta.url)`, relative ones only. */
export function relativeReferences(text: string): string[] {
  const imports = text.matchAll(/\b(?:from|import)\s*\(?\s*["'](\.{1,2}\/[^"']+)["']/g);
  const urls = text.matchAll(/new URL\(\s*["']([^"']+)["'],\s*import\.meta\.url/g);
  return [...imports, ...urls].map(([, specifier]) => specifier!);
}

/**
 * Static fields that use their class before it is there. TypeScript 7.0 replaces the name of a class by a variable that
 * gets its value after the class (`static a = new _a()`), when a private method uses that name.
 */
export function prematureStatics(text: string): string[] {
  return [...text.matchAll(/^ *static #?\w+ = .*\b_[a-z]\b.*$/gm)].map(([line]) => line.trim());
}
