import { join } from "node:path";
import { expect, test } from "vitest";
import { UsageError } from "../src/command-failure.ts";
import { readMcp } from "./read-mcp.ts";

const project = join(import.meta.dirname, "../../../examples/project");

test("without options it is a sandbox with the default rules, over standard input and output", async () => {
  const request = await readMcp([project], {});
  expect(request).toMatchObject({
    http: undefined,
    approval: "ask",
    browser: undefined,
    patch: undefined,
    writesThrough: false,
  });
  expect(request.sandbox).toMatchObject({ directory: project, runtime: "bwrap", apply: "never" });
  expect(request.sandbox.rules).toContainEqual(expect.objectContaining({ pattern: "**/.env*", permission: "none" }));
});

test("--http: an address, a key and the names that are ours", async () => {
  const http = async (args: readonly string[], environment: NodeJS.ProcessEnv = {}) =>
    (await readMcp([...args, project], environment)).http!;
  expect(await http(["--http"])).toEqual({
    host: "127.0.0.1",
    port: 9010,
    key: { value: expect.stringMatching(/^[\w-]{32}$/), isRandom: true },
    names: ["localhost", "127.0.0.1", "[::1]", "127.0.0.1"],
  });
  expect((await http(["--http"])).key.value).not.toBe((await http(["--http"])).key.value);
  expect(
    await http(["--http=[::]:80", "--key", "k", "--allow-host", "Box.example"], { AGENTFENSE_API_KEY: "e" }),
  ).toEqual({
    host: "::",
    port: 80,
    key: { value: "k", isRandom: false },
    names: ["localhost", "127.0.0.1", "[::1]", "box.example", "[::]"],
  });
  expect(await http(["--http=0.0.0.0:0"], { AGENTFENSE_API_KEY: "e" })).toMatchObject({ key: { value: "e" } });
});

test("--browser, with and without a path", async () => {
  expect((await readMcp(["--browser", project], {})).browser).toEqual({ executablePath: undefined });
  expect((await readMcp(["--browser=/opt/chromium", project], {})).browser).toEqual({
    executablePath: "/opt/chromium",
  });
});

test.each([
  [["--http=here"], "--http takes an address such as 127.0.0.1:9010"],
  [["--http=127.0.0.1"], "--http takes an address"],
  [["--http=127.0.0.1:70000"], "--http takes an address"],
  [["--http", "--key", "two words"], "the key must be printable ASCII"],
  [["--http", "--key", ""], "the key must be printable ASCII"],
  [["--key", "k"], "--key goes with --http"],
  [["--allow-host", "a"], "--allow-host goes with --http"],
  [["--approve", "sometimes"], '--approve is one of ask, never, not "sometimes"'],
  [["--write-through", "--apply"], "give --write-through or --apply, not both"],
  [["--delta", "/tmp/somewhere"], "Unknown option '--delta'"],
  [["--workdir", "src"], "Unknown option '--workdir'"],
  [["--root", "/"], "Unknown option '--root'"],
  [["--read-only-path", "/opt"], "Unknown option '--read-only-path'"],
  [["--preset", "no-such"], "no preset"],
  [["other"], "mcp takes one directory"],
])("%j is a usage error", async (args, message) => {
  const failure = await readMcp([...args, project], {}).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(UsageError);
  expect((failure as UsageError).message).toContain(message);
});
