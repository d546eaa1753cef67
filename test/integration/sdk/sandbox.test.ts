import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AuditEvent,
  FileNotFoundError,
  PermissionDeniedError,
  Sandbox,
  SandboxNotRunningError,
} from "@agentfense/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../../support/server.ts";

const EXAMPLE = join(import.meta.dirname, "../../../examples/project");

let server: TestServer;
let scratch: string;
let project: string;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  scratch = mkdtempSync(join(tmpdir(), "agentfense-sdk-"));
  project = join(scratch, "parcels");
  cpSync(EXAMPLE, project, { recursive: true });
  sandbox = await Sandbox.fromLocal(project, {
    endpoint: server.grpc,
    permissions: [{ pattern: "/src/**", permission: "write" }],
    preset: "agent-safe",
  });
});
afterAll(async () => {
  await sandbox?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});

describe("a sandbox on a directory", () => {
  test("knows what it is", async () => {
    expect(sandbox.status).toBe("running");
    expect(sandbox.info).toMatchObject({ id: sandbox.id, codebaseId: sandbox.codebaseId, sync: "manual" });
    expect(await sandbox.client.getCodebase(sandbox.codebaseId)).toMatchObject({ name: "parcels" });
    expect(await sandbox.refresh()).toEqual(sandbox.info);
  });

  test("run: a result, whatever the exit code; check makes it an error with the result", async () => {
    const result = await sandbox.run("cat package.json | head -2; ls secrets; echo bad >&2; exit 3");
    expect(result).toMatchObject({
      exitCode: 3,
      success: false,
      stdout: '{\n  "name": "parcel-tracker",\n',
      timedOut: false,
      truncated: false,
    });
    expect(result.stderr).toMatch(/secrets.*\nbad\n$/s);
    await expect(sandbox.run("exit 4", { check: true })).rejects.toMatchObject({
      name: "CommandExecutionError",
      result: { exitCode: 4 },
    });
    expect((await sandbox.run(["printf", "%s|", "$HOME", "a b"])).stdout).toBe("$HOME|a b|");
  });

  test("run with callbacks streams, and has the same result", async () => {
    const heard: string[] = [];
    const result = await sandbox.run("echo one; echo two >&2; cat; exit 5", {
      stdin: "three\n",
      onStdout: (text) => void heard.push(text),
      onStderr: (text) => void heard.push(text),
    });
    expect(result).toMatchObject({ exitCode: 5, stdout: "one\nthree\n", stderr: "two\n", command: expect.any(String) });
    expect(heard.join("").split("\n").sort()).toEqual(["", "one", "three", "two"]);
    await expect(sandbox.run("exit 6", { check: true, onStdout: () => {} })).rejects.toMatchObject({
      name: "CommandExecutionError",
      result: { exitCode: 6 },
    });
    // It has no input unless there is one, and does not wait for any.
    expect((await sandbox.run("cat; echo done", { onStdout: () => {} })).stdout).toBe("done\n");
  });

  test("run out of time is a result with what there was; check makes it an error", async () => {
    const options = { timeoutMs: 1000 };
    expect(await sandbox.run("echo begun; sleep 60", options)).toMatchObject({ timedOut: true, stdout: "begun\n" });
    const streamed = await sandbox.run("echo begun; sleep 60", { ...options, onStdout: () => {} });
    expect(streamed).toMatchObject({ timedOut: true, success: false, stdout: "begun\n" });
    await expect(sandbox.run("sleep 60", { ...options, check: true })).rejects.toMatchObject({
      name: "CommandTimeoutError",
      result: { timedOut: true },
    });
  });

  test("a session keeps its state, streams, and knows that its shell has ended", async () => {
    await using session = await sandbox.session({ env: { GREETING: "hello" } });
    expect(session.id).toMatch(/./);
    await session.exec("cd src; SHELF=oak; greet() { echo $GREETING $1; }");
    expect((await session.exec("pwd; echo $SHELF; greet you")).stdout).toBe("/workspace/src\noak\nhello you\n");
    const heard: string[] = [];
    await session.exec("greet them", { onStdout: (text) => void heard.push(text) });
    expect(heard.join("")).toBe("hello them\n");
    const execution = await session.stream("greet stream; exit 7");
    expect(await execution.wait()).toMatchObject({ stdout: "hello stream\n", exitCode: 7, sessionClosed: true });
    await expect(session.exec("pwd")).rejects.toMatchObject({ name: "SessionClosedError" });
    await using other = await sandbox.session();
    expect(other.closed).toBe(false);
    await other.exec("exit");
    expect(other.closed).toBe(true);
  });

  test("a terminal shows what is typed, is resized, and tells how its program ended", async () => {
    await using terminal = await sandbox.terminal({ argv: ["sh"], columns: 90, rows: 30 });
    await terminal.write("stty size; stty size | tr ' ' x\r");
    const reader = terminal.output.pipeThrough(new TextDecoderStream()).getReader();
    let shown = "";
    const until = async (wanted: string): Promise<void> => {
      while (!shown.includes(wanted)) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`the terminal ended without ${wanted}: ${shown}`);
        shown += value;
      }
    };
    await until("30x90");
    await terminal.resize({ columns: 100, rows: 40 });
    await terminal.write("stty size | tr ' ' x\r");
    await until("40x100");
    await terminal.write("exit 9\r");
    while (!(await reader.read()).done);
    expect(await terminal.exit).toEqual({ exitCode: 9 });
  });

  test("files by the names of node:fs, and the rules apply", async () => {
    const { files } = sandbox;
    expect(JSON.parse(await files.readFile("package.json", "utf8"))).toMatchObject({ name: "parcel-tracker" });
    expect(await files.readFile("/workspace/package.json")).toEqual(await files.readFile("/package.json"));
    expect((await files.readdir("/workspace/src")).sort()).toEqual(["events.js", "tracker.js"]);
    expect(await files.readdir(".", { recursive: true })).toContain("docs/carriers.md");
    const [stat] = await files.readdir("docs", { withFileTypes: true });
    expect(stat).toMatchObject({ path: "/docs/carriers.md", name: "carriers.md", permission: "read" });
    expect([stat?.isFile(), stat?.isDirectory(), stat?.isSymbolicLink()]).toEqual([true, false, false]);

    await files.mkdir("src/made/deep", { recursive: true });
    await files.writeFile("src/made/deep/a.txt", "one\n", { mode: 0o755 });
    expect((await files.stat("src/made/deep/a.txt")).mode & 0o777).toBe(0o755);
    await files.appendFile("/src/made/deep/a.txt", new TextEncoder().encode("two\n"));
    expect((await sandbox.run("cat src/made/deep/a.txt")).stdout).toBe("one\ntwo\n");
    await files.rename("src/made/deep/a.txt", "src/made/b.txt");
    expect((await files.readdir("src/made", { recursive: true })).sort()).toEqual(["b.txt", "deep"]);
    let text = "";
    for await (const chunk of files.readStream("src/made/b.txt")) text += Buffer.from(chunk).toString();
    expect(text).toBe("one\ntwo\n");
    await files.rm("src/made", { recursive: true });
    await expect(files.stat("src/made")).rejects.toThrow(FileNotFoundError);
    await expect(files.rm("src/made")).rejects.toThrow(FileNotFoundError);
    await files.rm("src/made", { force: true });

    await expect(files.readFile("secrets/signing.key")).rejects.toThrow(FileNotFoundError);
    await expect(files.writeFile("package.json", "{}")).rejects.toThrow(PermissionDeniedError);
    // A directory of the workspace that has the workspace's name is not the workspace.
    await files.mkdir("src/workspace");
    await files.rm("src/workspace", { recursive: true });
  });

  test("watch sees every change from `ready` on, and closing ends its loop", async () => {
    await using watch = sandbox.files.watch("src", { recursive: true });
    await watch.ready;
    await sandbox.run("echo x > src/watched.txt");
    const seen: string[] = [];
    for await (const { filename } of watch) {
      seen.push(filename);
      if (filename === "watched.txt") watch.close();
    }
    expect(seen).toContain("watched.txt");
    await sandbox.run("rm src/watched.txt");
    await expect(sandbox.files.watch("nothing-there").ready).rejects.toThrow(FileNotFoundError);
  });

  test("permissions: those in force, why, and others", async () => {
    expect(await sandbox.permissions.explain("src/a.js")).toMatchObject({ permission: "write" });
    const before = await sandbox.permissions.get();
    expect(before).toContainEqual(expect.objectContaining({ pattern: "/src/**", permission: "write" }));
    const after = await sandbox.permissions.update([{ pattern: "/docs/**", permission: "read" }]);
    expect(sandbox.info.permissions).toEqual(after);
    expect((await sandbox.run("ls")).stdout).toBe("docs\n");
    await sandbox.permissions.update(before);
    expect(await sandbox.permissions.get()).toEqual(before);
  });

  test("changes, their diff as one text, and discarding them", async () => {
    await sandbox.run("echo '// new' > src/new.js; echo '// more' >> src/events.js; printf '\\0' > src/blob");
    const changes = await sandbox.changes().toArray();
    expect(changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "added /src/blob",
      "modified /src/events.js",
      "added /src/new.js",
    ]);
    const text = await sandbox.diff().text();
    expect(text).toMatch(/^\+\/\/ new$/m);
    expect(text).toMatch(/^\+\/\/ more$/m);
    expect(text).toMatch(/^Binary files \/dev\/null and b\/src\/blob differ$/m);
    expect((await sandbox.diff({ paths: ["src/new.js"] }).toArray()).map(({ change }) => change.path)).toEqual([
      "/src/new.js",
    ]);
    expect((await sandbox.discard({ paths: ["/src/new.js"] })).map(({ path }) => path)).toEqual(["/src/new.js"]);
    expect(await sandbox.discard()).toHaveLength(2);
    expect(await sandbox.changes().toArray()).toEqual([]);
  });

  test("events: what happened, then what happens, without gaps or repeats", async () => {
    const past: AuditEvent[] = [];
    for await (const event of sandbox.events({ follow: false })) past.push(event);
    expect(past[0]).toMatchObject({ type: "sandbox_created", sandboxId: sandbox.id });
    const afterSequence = past.at(-1)!.sequence;
    await sandbox.run("echo before");
    const seen: number[] = [];
    for await (const { sequence, type } of sandbox.events({ types: ["command_executed"], afterSequence })) {
      expect(type).toBe("command_executed");
      seen.push(sequence);
      if (seen.length === 3) break;
      await sandbox.run("echo during");
    }
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
  });

  test("events end quietly when the object is closed, and with the reason when the signal is aborted", async () => {
    const other = await Sandbox.connect(sandbox.id, { endpoint: server.grpc });
    const following = (async () => {
      for await (const _ of other.events()) await other.close();
    })();
    await following;
    const reason = new Error("enough");
    const abort = new AbortController();
    const aborted = (async () => {
      for await (const _ of sandbox.events({ signal: abort.signal })) abort.abort(reason);
    })();
    await expect(aborted).rejects.toBe(reason);
  });

  test("stop and start, as often as one likes; a stopped one takes no commands and keeps its changes", async () => {
    await sandbox.run("echo kept > src/kept.txt");
    await sandbox.stop();
    await sandbox.stop();
    expect(sandbox.status).toBe("stopped");
    await expect(sandbox.run("true")).rejects.toThrow(SandboxNotRunningError);
    await expect(sandbox.exec("true")).rejects.toThrow(SandboxNotRunningError);
    expect(await sandbox.changes().toArray()).toMatchObject([{ path: "/src/kept.txt" }]);
    await sandbox.start();
    await sandbox.start();
    expect(sandbox.status).toBe("running");
    expect((await sandbox.run("cat src/kept.txt")).stdout).toBe("kept\n");
    await sandbox.discard();
  });
});
