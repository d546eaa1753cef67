import { expect, test } from "vitest";
import { publishedManifest } from "../../scripts/build/manifest.ts";
import {
  foreignWasm,
  prematureStatics,
  relativeReferences,
  rewriteDeclarations,
  rewriteJavaScript,
  rewriteReadme,
} from "../../scripts/build/rewrite.ts";

test("the file of a thread is named as it is compiled, a script as it is", () => {
  const text = 'new Worker(new URL("./main.ts", import.meta.url)); new URL("launcher.sh", import.meta.url); "/a/b.ts";';
  expect(rewriteJavaScript(text, () => undefined)).toBe(
    'new Worker(new URL("./main.js", import.meta.url)); new URL("launcher.sh", import.meta.url); "/a/b.ts";',
  );
});

test("a JSON module becomes a constant", () => {
  const text = 'import a from "./a.js";\nimport b from "../b.json" with { type: "json" };\nb.c;\n';
  expect(rewriteJavaScript(text, (specifier) => ({ c: specifier, $: "$1" }))).toBe(
    'import a from "./a.js";\nconst b = {\n  "c": "../b.json",\n  "$": "$1"\n};\nb.c;\n',
  );
});

test("a WASM file of another package is one beside the file that uses it", () => {
  const text = 'a(import.meta.resolve("@b/c/d/e.wasm"), import.meta.resolve("f/g.wasm"), import.meta.resolve("h"));';
  expect(foreignWasm(text)).toEqual([
    { package: "@b/c", path: "d/e.wasm", name: "e.wasm" },
    { package: "f", path: "g.wasm", name: "g.wasm" },
  ]);
  expect(rewriteJavaScript(text, () => undefined)).toBe(
    'a(new URL("./e.wasm", import.meta.url).href, new URL("./g.wasm", import.meta.url).href, import.meta.resolve("h"));',
  );
});

test("declarations name JavaScript in every kind of import", () => {
  const text =
    'import type { A } from "./a.ts";\nexport { b } from "../b/b.ts";\ntype C = import("./c.ts").C; // "d.ts"\n';
  expect(rewriteDeclarations(text)).toBe(
    'import type { A } from "./a.js";\nexport { b } from "../b/b.js";\ntype C = import("./c.js").C; // "d.ts"\n',
  );
});

test("a README keeps only links that lead somewhere from outside the repository", () => {
  const text = "[`run`](../../docs/cli.md#run), [below](#below), [Node](https://nodejs.org), `run[0](x)`\n";
  expect(rewriteReadme(text)).toBe("`run`, [below](#below), [Node](https://nodejs.org), `run[0](x)`\n");
});

test("what a file refers to is found wherever it stands", () => {
  const text = `import a from "./a.js";
export { b } from "../b.js";
import "./c.js";
import d from "d";
await import("./e.js");
new URL("f.sh", import.meta.url);
new URL(
  "./g.ts",
  import.meta.url,
);`;
  expect(relativeReferences(text)).toEqual(["./a.js", "../b.js", "./c.js", "./e.js", "f.sh", "./g.ts"]);
});

test("a static field that needs its class too early is found", () => {
  const text =
    "var _a;\nclass A {\n    static #one = new _a();\n    static two = new A();\n    three = _a.#one;\n}\n_a = A;\n";
  expect(prematureStatics(text)).toEqual(["static #one = new _a();"]);
});

test("the published package.json names compiled files and exact versions, and is not private", () => {
  const source = {
    name: "one",
    version: "1.2.3",
    private: true,
    engines: { node: ">=24" },
    exports: { ".": "./src/index.ts", "./messages": "./src/generated/messages_pb.js" },
    bin: { one: "./src/cli.ts" },
    files: ["src"],
    dependencies: { two: "^1.0.0", yaml: "^2.0.0" },
    peerDependencies: { ai: ">=5", three: "^1.0.0" },
  };
  expect(
    publishedManifest(
      source,
      new Map([
        ["two", "1.2.3"],
        ["three", "1.2.3"],
      ]),
    ),
  ).toEqual({
    name: "one",
    version: "1.2.3",
    engines: { node: ">=24" },
    exports: {
      ".": { types: "./dist/index.d.ts", default: "./dist/index.js" },
      "./messages": { types: "./dist/generated/messages_pb.d.ts", default: "./dist/generated/messages_pb.js" },
    },
    bin: { one: "dist/cli.js" },
    files: ["dist"],
    dependencies: { two: "1.2.3", yaml: "^2.0.0" },
    peerDependencies: { ai: ">=5", three: "1.2.3" },
    publishConfig: { access: "public" },
  });
});

test("an entry point that is not compiled from the source is refused", () => {
  const manifest = { name: "one", version: "1.0.0", engines: { node: ">=24" }, exports: { ".": "./lib/index.ts" } };
  expect(() => publishedManifest(manifest, new Map())).toThrow("must be a .ts or .js file below ./src: ./lib/index.ts");
});
