import type { Manifest } from "./packages.ts";

/** What only the workspace needs: "private" keeps the source itself from being published by mistake. */
const LEFT_OUT = ["private", "files", "scripts", "devDependencies"];

/**
 * The package.json of the published package: entry points are the compiled files with their declarations, and our own
 * packages are asked for in exactly the version they were built with.
 */
export function publishedManifest(source: Manifest, versions: ReadonlyMap<string, string>): Record<string, unknown> {
  const asBuilt = (ranges: Readonly<Record<string, string>>) =>
    mapEntries(ranges, (name, range) => versions.get(name) ?? range);
  const kept = Object.entries(source).filter(([key]) => !LEFT_OUT.includes(key));
  return {
    ...Object.fromEntries(kept),
    exports: mapValues(source.exports, (target) => ({
      types: declarationsOf(target),
      default: compiledPath(target),
    })),
    // npm removes a program whose path starts with "./" when it publishes.
    ...(source.bin && { bin: mapValues(source.bin, (target) => compiledPath(target).slice("./".length)) }),
    files: ["dist"],
    ...(source.dependencies && { dependencies: asBuilt(source.dependencies) }),
    ...(source.peerDependencies && { peerDependencies: asBuilt(source.peerDependencies) }),
    publishConfig: { access: "public" },
  };
}

/** The files that the published package.json names. */
export function entryFiles({ exports, bin = {} }: Manifest): string[] {
  const targets = Object.values(exports);
  return [...targets.map(compiledPath), ...targets.map(declarationsOf), ...Object.values(bin).map(compiledPath)];
}

/** "./src/cli.ts" is "./dist/cli.js"; generated JavaScript keeps its name. */
export function compiledPath(source: string): string {
  const [, path] = /^\.\/src\/(.+)\.(?:ts|js)$/.exec(source) ?? [];
  if (path === undefined) throw new Error(`an entry point must be a .ts or .js file below ./src: ${source}`);
  return `./dist/${path}.js`;
}

function declarationsOf(source: string): string {
  return compiledPath(source).replace(/\.js$/, ".d.ts");
}

function mapValues<T>(record: Readonly<Record<string, string>>, map: (value: string) => T): Record<string, T> {
  return mapEntries(record, (_, value) => map(value));
}

function mapEntries<T>(
  record: Readonly<Record<string, string>>,
  map: (key: string, value: string) => T,
): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(key, value)]));
}
