import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { ifAgentLayer, installLine, needAgentLayer } from "../src/agent-layer.ts";

const wanted = `@agentfense/agent@${manifest.version}`;
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "agentfense-layer-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function installedIn(...folders: readonly string[]): string {
  const directory = join(root, ...folders, "node_modules/agentfense/dist");
  mkdirSync(directory, { recursive: true });
  return directory;
}

test("the line that installs the agent layer fits where agentfense is", () => {
  const inProject = installedIn("project");
  writeFileSync(join(root, "project/package.json"), "{}");
  expect(installLine("mcp", inProject)).toBe(`npm install ${wanted}`);
  expect(installLine("mcp", installedIn("lib"))).toBe(`npm install --global ${wanted}`);
  const forOneCall = installedIn("_npx/0123456789abcdef");
  writeFileSync(join(root, "_npx/0123456789abcdef/package.json"), "{}");
  expect(installLine("mcp", forOneCall)).toBe(`npx -p agentfense@${manifest.version} -p ${wanted} agentfense mcp`);
  expect(installLine("mcp", join(root, "repository/src"))).toBe(`npm install ${wanted}`);
});

test("a project that has agentfense from a packed file gets the layer from the one beside it, if it is there", () => {
  const inProject = installedIn("project");
  const dependencies = { agentfense: `file:../pack/agentfense-${manifest.version}.tgz` };
  writeFileSync(join(root, "project/package.json"), JSON.stringify({ dependencies }));
  expect(installLine("mcp", inProject)).toBe(`npm install ${wanted}`);
  const layer = join(root, `pack/optional/agentfense-agent-${manifest.version}.tgz`);
  mkdirSync(dirname(layer), { recursive: true });
  writeFileSync(layer, "");
  expect(installLine("mcp", inProject)).toBe(`npm install ${layer}`);
});

test("only the layer's own absence is taken for it: what else fails while loading is told as it is", async () => {
  const missing = (name: string) => () =>
    Promise.reject(
      Object.assign(new Error(`Cannot find package '${name}' imported from /x.js`), { code: "ERR_MODULE_NOT_FOUND" }),
    );
  expect(await ifAgentLayer(missing("@agentfense/agent"))).toBeUndefined();
  await expect(ifAgentLayer(missing("ws"))).rejects.toThrow("Cannot find package 'ws'");
  await expect(needAgentLayer("mcp", missing("@agentfense/agent"))).rejects.toMatchObject({
    message: "mcp needs the package @agentfense/agent, which is not installed",
    hint: `npm install ${wanted}`,
  });
});
