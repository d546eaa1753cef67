import { EmbeddedEngine, type Sandbox } from "agentfense";
import { deepAgentsBackend } from "agentfense/deepagents";
import { createDeepAgent, isSandboxBackend } from "deepagents";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Call, Conversation } from "./support/contract.ts";
import { stayOffline } from "./support/offline.ts";
import { HOLD_LOCK, lockIsFree, lockIsHeld, openProject } from "./support/project.ts";
import { Script } from "./support/script.ts";
import { ScriptedChatModel } from "./support/scripted-chat-model.ts";

let engine: EmbeddedEngine;
beforeAll(async () => {
  engine = await EmbeddedEngine.open();
});
afterAll(() => engine?.[Symbol.asyncDispose]());
stayOffline();

async function converse(sandbox: Sandbox, { calls, signal }: Conversation): Promise<readonly string[]> {
  const script = new Script(calls);
  const agent = createDeepAgent({ model: new ScriptedChatModel(script), backend: deepAgentsBackend(sandbox) });
  const messages = [{ role: "user" as const, content: "work" }];
  await agent.invoke({ messages }, { recursionLimit: 200, ...(signal && { signal }) });
  return script.outputs;
}

describe("a deep agent whose backend is a sandbox", () => {
  test("has its files and its commands there, under the rules", async () => {
    const sandbox = await openProject(engine);
    const work: readonly (Call & { readonly told: RegExp })[] = [
      { tool: "ls", input: { path: "/" }, told: /^(?!.*\.env).*\/workspace\/README\.md.*\/workspace\/src\//s },
      {
        tool: "read_file",
        input: { file_path: "/src/greet.sh" },
        told: /name="world"\necho "hello \$name"/,
      },
      { tool: "read_file", input: { file_path: "/.env" }, told: /it does not exist/ },
      { tool: "grep", input: { pattern: "name=", path: "/" }, told: /\/workspace\/src\/greet\.sh/ },
      { tool: "grep", input: { pattern: "s3cret", path: "/" }, told: /No matches/ },
      { tool: "glob", input: { pattern: "**/*.sh", path: "/" }, told: /^\/workspace\/src\/greet\.sh$/ },
      {
        tool: "edit_file",
        input: { file_path: "/workspace/src/greet.sh", old_string: "world", new_string: "deep" },
        told: /Successfully replaced 1 occurrence/,
      },
      { tool: "write_file", input: { file_path: "/README.md", content: "x" }, told: /permission denied/ },
      { tool: "write_file", input: { file_path: "/src/new/a.txt", content: "a\n" }, told: /Successfully wrote/ },
      { tool: "execute", input: { command: "sh src/greet.sh; cat .env" }, told: /hello deep\ncat: .env: No such file/ },
    ];
    const outputs = await converse(sandbox, { calls: work });
    expect(outputs.length).toBe(work.length);
    for (const [at, { told }] of work.entries()) expect(outputs[at]).toMatch(told);
    const changes = await sandbox.changes().toArray();
    expect(changes.map(({ path }) => path)).toEqual(["/src/greet.sh", "/src/new", "/src/new/a.txt"]);
  });

  test("ends its command when it is aborted", async () => {
    const sandbox = await openProject(engine);
    const abort = new AbortController();
    const calls = [{ tool: "execute", input: { command: HOLD_LOCK } }];
    const conversation = converse(sandbox, { calls, signal: abort.signal });
    const failure = conversation.catch((error: unknown) => error);
    await lockIsHeld(sandbox);
    abort.abort();
    expect(await failure).toBeInstanceOf(Error);
    expect(await lockIsFree(sandbox)).toBe(true);
  });
});

describe("the backend by itself", () => {
  test("is one with commands to deepagents", async () => {
    const sandbox = await openProject(engine);
    const backend = deepAgentsBackend(sandbox);
    expect(isSandboxBackend(backend)).toBe(true);
    expect(backend.id).toBe(sandbox.id);
  });

  test("reads text by lines and anything else as bytes", async () => {
    const sandbox = await openProject(engine);
    const backend = deepAgentsBackend(sandbox);
    const bytes = Uint8Array.of(0x89, 0x50, 0, 0xff);
    await sandbox.files.writeFile("src/lines", "one\ntwo\nthree\n");
    await sandbox.files.writeFile("src/dot.png", bytes);
    await sandbox.files.writeFile("src/latin1", Uint8Array.of(0xe9));
    const text = { mimeType: "text/plain", totalLines: 3 };
    expect(await backend.read("/src/lines", 0, 2)).toEqual({
      ...text,
      content: "one\ntwo",
      startLine: 1,
      endLine: 2,
      nextOffset: 2,
    });
    expect(await backend.read("/src/lines", 2)).toEqual({ ...text, content: "three\n", startLine: 3, endLine: 3 });
    expect(await backend.read("/src/lines", 3)).toEqual({ error: "/src/lines has only 3 lines" });
    expect(await backend.read("/src/dot.png")).toEqual({ content: bytes, mimeType: "image/png" });
    expect(await backend.read("/src/latin1")).toEqual({
      content: Uint8Array.of(0xe9),
      mimeType: "application/octet-stream",
    });
    const { modifiedAt } = await sandbox.files.stat("src/lines");
    const time = modifiedAt.toISOString();
    const data = { content: "one\ntwo\nthree\n", mimeType: "text/plain", created_at: time, modified_at: time };
    expect(await backend.readRaw("/src/lines")).toEqual({ data });
  });

  test("finds by globs and plain text, as many as are wanted", async () => {
    const sandbox = await openProject(engine, { "a.ts": "x(1)\n", "lib/b.ts": "x(1)\nx(1)\n", "lib/c.py": "x(1)\n" });
    const backend = deepAgentsBackend(sandbox);
    const pathsOf = async (pattern: string, path?: string) =>
      (await backend.glob(pattern, path)).files?.map((file) => file.path);
    expect(await pathsOf("*.ts")).toEqual(["/workspace/a.ts"]);
    expect(await pathsOf("**/*.ts", "/")).toEqual(["/workspace/a.ts", "/workspace/lib/b.ts"]);
    expect(await pathsOf("*.{ts,py}", "/lib")).toEqual(["/workspace/lib/b.ts", "/workspace/lib/c.py"]);
    expect(await backend.glob("[")).toEqual({ error: expect.stringMatching(/^the glob does not fit: /) });
    const lines = [
      { path: "/workspace/lib/b.ts", line: 1, text: "x(1)" },
      { path: "/workspace/lib/b.ts", line: 2, text: "x(1)" },
    ];
    expect(await backend.grep("x(1)", "/lib", "*.ts")).toEqual({ matches: lines, truncated: false });
    expect(await backend.grep("x(1)", "/lib", "*.ts", 1)).toEqual({ matches: lines.slice(0, 1), truncated: true });
    expect(await backend.grep("x(1)", "/nowhere")).toEqual({ error: expect.stringContaining("it does not exist") });
  });

  test("writes, edits, deletes, uploads and downloads, and names what is wrong", async () => {
    const sandbox = await openProject(engine);
    const backend = deepAgentsBackend(sandbox);
    const content = new TextEncoder().encode("a a\n");
    expect(
      await backend.uploadFiles?.([
        ["/src/up/a", content],
        ["/README.md", content],
      ]),
    ).toEqual([
      { path: "/src/up/a", error: null },
      { path: "/README.md", error: "permission_denied" },
    ]);
    expect(await backend.edit("/src/up/a", "a", "b")).toEqual({ error: expect.stringContaining("2 times") });
    expect(await backend.edit("/src/up/a", "", "b")).toEqual({ error: "the old text is empty" });
    expect(await backend.edit("/src/up/a", "a", "$&", true)).toEqual({ path: "/src/up/a", occurrences: 2 });
    expect(await backend.downloadFiles?.(["/src/up/a", "/.env", "/src"])).toEqual([
      { path: "/src/up/a", content: new TextEncoder().encode("$& $&\n"), error: null },
      { path: "/.env", content: null, error: "file_not_found" },
      { path: "/src", content: null, error: "is_directory" },
    ]);
    expect(await backend.delete?.("/src/up")).toEqual({ path: "/src/up" });
    expect(await backend.delete?.("/src/up")).toEqual({ error: expect.stringContaining("it does not exist") });
    expect(await backend.ls("/src")).toEqual({
      files: [expect.objectContaining({ path: "/workspace/src/greet.sh", is_dir: false })],
    });
  });

  test("tells how a command ended, and keeps the ends of what is too long", async () => {
    const sandbox = await openProject(engine);
    const backend = deepAgentsBackend(sandbox, { maxOutput: 20 });
    expect(await backend.execute("echo out; echo err >&2; exit 3")).toEqual({
      output: "out\nerr\n",
      exitCode: 3,
      truncated: false,
    });
    expect(await backend.execute("seq 100")).toEqual({
      output: "1\n2\n3\n4\n5\n\n[272 characters left out]\n98\n99\n100\n",
      exitCode: 0,
      truncated: true,
    });
    const slow = await deepAgentsBackend(sandbox, { timeoutMs: 50 }).execute("sleep 30");
    expect(slow.output).toBe("\n[ended after 50 ms: its time was up]");
    await sandbox.destroy();
    await expect(backend.execute("true")).rejects.toThrow("sandbox not found");
    await expect(async () => await backend.ls("/")).rejects.toThrow("sandbox not found");
  });
});
