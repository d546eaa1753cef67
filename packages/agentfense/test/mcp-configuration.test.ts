import { cp, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { expect, test } from "vitest";
import { call } from "./mcp-client.ts";
import { readMcp } from "./read-mcp.ts";
import { scratch } from "./run-cli.ts";

const repository = join(import.meta.dirname, "../../..");
const project = join(repository, "examples/project");

interface Configuration {
  readonly mcpServers: { readonly agentfense: Readonly<Record<string, unknown>> };
}

async function example(name: string): Promise<string> {
  return await readFile(join(repository, "examples/docs/mcp", name), "utf8");
}

async function configured(name: string) {
  return (JSON.parse(await example(name)) as Configuration).mcpServers.agentfense;
}

/** What comes behind "npx agentfense mcp" on the last line of a script. */
function argumentsIn(script: string): string[] {
  const [, rest] = /npx agentfense mcp (.*)$/.exec(script.trimEnd())!;
  return rest!.split(" ");
}

test("the configuration for Claude Code starts a server that works, as it stands", async () => {
  const cwd = await scratch();
  await cp(project, cwd, { recursive: true });
  await symlink(join(repository, "node_modules"), join(cwd, "node_modules")); // for npx
  const { command, args } = (await configured("claude-code.json")) as { command: string; args: string[] };
  const client = new Client({ name: "test", version: "1" });
  const { PATH = "", HOME = "/" } = process.env;
  await client.connect(new StdioClientTransport({ command, args, cwd, env: { PATH, HOME }, stderr: "ignore" }));
  expect(await call(client, "read_file", { path: ".env" })).toMatchObject({ isError: true });
  expect(await call(client, "write_file", { path: "output/a", content: "1" })).toMatchObject({ isError: false });
  expect(await readFile(join(cwd, "output/a"), "utf8")).toBe("1");
  await client.close();
});

test("the other lines are ones that the command line takes", async () => {
  const there = (args: readonly string[]) =>
    args.map((word) => (/^(?:\.|\$\{workspaceFolder\})$/.test(word) ? project : word));
  const cursor = (await configured("cursor.json")) as { command: string; args: string[] };
  expect([cursor.command, ...cursor.args.slice(0, 2)]).toEqual(["npx", "agentfense", "mcp"]);
  expect(await readMcp(there(cursor.args.slice(2)), {})).toMatchObject({ writesThrough: true, http: undefined });
  for (const name of ["claude-code.sh", "inspector.sh"]) {
    expect(await readMcp(there(argumentsIn(await example(name))), {})).toMatchObject({ http: undefined });
  }
  const { http } = await readMcp(there(argumentsIn(await example("http.sh"))), {
    AGENTFENSE_API_KEY: "made-up",
  });
  expect(await configured("http.json")).toMatchObject({
    url: `http://${http!.host}:${http!.port}/mcp`,
    headers: { Authorization: expect.stringMatching(/^Bearer .*AGENTFENSE_API_KEY/) },
  });
  expect(http!.key).toEqual({ value: "made-up", isRandom: false });
});
