import { chmodSync, copyFileSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { CompiledPackage } from "./compile.ts";
import { compiledPath, entryFiles, publishedManifest } from "./manifest.ts";
import { repository } from "./packages.ts";
import {
  type ForeignWasm,
  foreignWasm,
  prematureStatics,
  relativeReferences,
  rewriteDeclarations,
  rewriteJavaScript,
  rewriteReadme,
} from "./rewrite.ts";

/**
 * Lays a package out as it is published:
 *
 *   package.json  README.md  LICENSE
 *   dist/         the compiled source, what lies beside it and is neither TypeScript nor JSON, and the WASM of others
 */
export function stage(one: CompiledPackage, directory: string, versions: ReadonlyMap<string, string>): void {
  const source = join(one.directory, "src");
  const dist = join(directory, "dist");
  const manifest = publishedManifest(one.manifest, versions);
  const readJson = (path: string): unknown =>
    path === join(one.directory, "package.json") ? manifest : JSON.parse(readFileSync(path, "utf8"));

  for (const path of filesBelow(source).filter((path) => !/(?<!\.d)\.ts$|\.json$/.test(path))) {
    place(join(dist, path), (target) => copyFileSync(join(source, path), target));
  }
  for (const path of filesBelow(one.compiled).filter((path) => !path.endsWith(".json"))) {
    const text = readFileSync(join(one.compiled, path), "utf8");
    const premature = prematureStatics(text);
    if (premature.length > 0) {
      throw new Error(
        `${one.folder}/src/${path} would fail when it is loaded: ${premature[0]}\n` +
          "The compiler does this to a class with static fields that is named in one of its private methods.",
      );
    }
    const rewritten = path.endsWith(".d.ts")
      ? rewriteDeclarations(text)
      : rewriteJavaScript(text, (specifier) => readJson(join(dirname(join(source, path)), specifier)));
    place(join(dist, path), (target) => writeFileSync(target, rewritten));
    for (const wasm of foreignWasm(text)) placeWasm(wasm, dirname(join(dist, path)));
  }

  writeFileSync(join(directory, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  writeFileSync(join(directory, "README.md"), rewriteReadme(readFileSync(join(one.directory, "README.md"), "utf8")));
  copyFileSync(join(repository, "LICENSE"), join(directory, "LICENSE"));

  const missing = entryFiles(one.manifest).filter((path) => !existsSync(join(directory, path)));
  const dangling = [...missing.map((path) => `  package.json: ${path}`), ...danglingReferences(dist)];
  if (dangling.length > 0) {
    throw new Error(`${one.manifest.name} names files it does not have:\n${dangling.join("\n")}`);
  }

  for (const program of Object.values(one.manifest.bin ?? {})) chmodSync(join(directory, compiledPath(program)), 0o755);
}

/** With its licence, which asks to go wherever the file goes. */
function placeWasm({ package: from, path, name }: ForeignWasm, directory: string): void {
  const home = join(repository, "node_modules", from);
  copyFileSync(join(home, path), join(directory, name));
  copyFileSync(join(home, "LICENSE"), join(directory, `${name}.LICENSE`));
}

function danglingReferences(dist: string): string[] {
  return filesBelow(dist)
    .filter((path) => /\.(?:js|ts)$/.test(path))
    .flatMap((path) => {
      const file = join(dist, path);
      return relativeReferences(readFileSync(file, "utf8"))
        .map((reference) => join(dirname(file), reference))
        .filter((target) => !existsSync(path.endsWith(".d.ts") ? target.replace(/\.js$/, ".d.ts") : target))
        .map((target) => `  dist/${path}: ${relative(dist, target)}`);
    });
}

function filesBelow(directory: string): string[] {
  return globSync("**", { cwd: directory, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)));
}

function place(target: string, write: (target: string) => void): void {
  mkdirSync(dirname(target), { recursive: true });
  write(target);
}
