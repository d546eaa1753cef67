import { getPreset, type Rule, registerPreset, SandboxClient } from "@agentfense/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aWhile, eventually } from "../../support/eventually.ts";
import { TestServer } from "../../support/server.ts";

let server: TestServer;
let client: SandboxClient;
let codebaseId: string;
beforeAll(async () => {
  server = await TestServer.start();
  client = new SandboxClient({ endpoint: server.grpc });
  ({ id: codebaseId } = await client.createCodebase({ name: "project", ownerId: "tester" }));
  await client.uploadFile(codebaseId, "a.txt", "alpha");
  await client.uploadFile(codebaseId, "sub/b.txt", "beta");
  await client.uploadFile(codebaseId, "secret.txt", "hidden");
});
afterAll(async () => {
  await client?.close();
  await server?.[Symbol.asyncDispose]();
});

const MOMENT: unknown = expect.any(Date);
/** With the types that the server would infer, so that they come back as they are. */
const WRITABLE: readonly Rule[] = [
  { pattern: "**", permission: "write", type: "glob" },
  { pattern: "/secret.txt", permission: "none", type: "file", priority: 100 },
  { pattern: "/sub/", permission: "read", type: "directory", priority: 10 },
];

/** A running sandbox whose changes stay its own. */
async function sandbox(): Promise<string> {
  const { id } = await client.createSandbox({ codebaseId, permissions: WRITABLE, sync: "manual" });
  await client.startSandbox(id);
  return id;
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

describe("sandboxes", () => {
  test("have all that they were made with, from the beginning to the end", async () => {
    const made = await client.createSandbox({
      codebaseId,
      codebaseVersion: 2,
      permissions: WRITABLE,
      runtime: "bwrap",
      network: "none",
      sync: "never",
      env: { GREETING: "hi" },
      labels: { team: "red" },
      resources: { memoryBytes: 268_435_456, pidsLimit: 64 },
      expiresInMs: 3_600_000,
      idlePauseMs: 600_000,
    });
    const expected = {
      id: expect.stringMatching(/^sb_[0-9a-f]+$/),
      codebaseId,
      ownerId: "tester",
      status: "pending",
      statusReason: "",
      permissions: WRITABLE,
      labels: { team: "red" },
      runtime: "bwrap",
      image: "",
      resources: {
        memoryBytes: 268_435_456,
        pidsLimit: 64,
        // Of the server.
        diskBytes: expect.any(Number),
        diskFiles: expect.any(Number),
        outputBytes: expect.any(Number),
      },
      network: "none",
      networkRules: [],
      secrets: [],
      sync: "never",
      codebaseVersion: 2,
      revocable: false,
      home: "",
      workspaceHome: "",
      pauseAtExpiry: false,
      idlePauseMs: 600_000,
      createdAt: MOMENT,
      expiresAt: MOMENT,
    };
    expect(made).toEqual(expected);
    expect(made.expiresAt!.getTime() - made.createdAt.getTime()).toBe(3_600_000);
    const { id } = made;
    expect(await client.startSandbox(id)).toEqual({ ...made, status: "running", startedAt: MOMENT });
    expect(await client.exec(id, 'echo "$GREETING"; ls')).toMatchObject({ stdout: "hi\na.txt\nsub\n" });
    expect(await client.pauseSandbox(id)).toMatchObject({ id, status: "paused", statusReason: "" });
    await expect(client.exec(id, "true")).rejects.toMatchObject({
      name: "SandboxNotRunningError",
      code: "SANDBOX_PAUSED",
    });
    expect(await client.resumeSandbox(id)).toMatchObject({ id, status: "running" });
    expect(await client.stopSandbox(id)).toMatchObject({ id, status: "stopped", stoppedAt: MOMENT });
    expect(await client.getSandbox(id)).toMatchObject({ id, status: "stopped" });
    const mine = { labels: { team: "red" }, codebaseId };
    expect((await client.listSandboxes({ ...mine, status: "stopped" }).toArray()).map((each) => each.id)).toEqual([id]);
    expect(await client.listSandboxes({ ...mine, status: "running" }).toArray()).toEqual([]);
    await client.destroySandbox(id);
    await expect(client.startSandbox(id)).rejects.toMatchObject({
      name: "SandboxNotFoundError",
      code: "SANDBOX_NOT_FOUND",
    });
  });

  test("get the rules that absent and given mean", async () => {
    registerPreset("of-this-test", [{ pattern: "/docs/**", permission: "read" }]);
    const rulesOf = async (rules: object) => {
      const { permissions } = await client.createSandbox({ codebaseId, ...rules });
      return permissions.map(({ type: _inferred, ...rule }) => rule);
    };
    const own: Rule = { pattern: "/own", permission: "view" };
    expect(await rulesOf({})).toEqual(getPreset("agent-safe"));
    expect(await rulesOf({ preset: "of-this-test" })).toEqual([{ pattern: "/docs/**", permission: "read" }]);
    expect(await rulesOf({ permissions: [] })).toEqual([]);
    expect(await rulesOf({ permissions: [own] })).toEqual([own]);
    expect(await rulesOf({ preset: "of-this-test", permissions: [own] })).toEqual([...getPreset("of-this-test"), own]);
  });

  test.each([
    [{ preset: "no-such" }, /^there is no preset "no-such"; known: agent-safe/],
    [{ permissions: [{ pattern: "a", permission: "all" }] }, /permission must be one of none, view, read, write/],
    [{ runtime: "vm" }, 'runtime must be one of bwrap, docker, mock, not "vm"'],
    [{ resources: { memoryBytes: -1 } }, "resources.memoryBytes must be a whole number, 0 or more, not -1"],
    [{ resources: { memoryBytes: 0 } }, /must be above 0/],
    [{ expiresInMs: 0 }, "expiresInMs must be a number of milliseconds above 0, not 0"],
  ])("refuse %j before anything is sent", async (options, message) => {
    const request = { codebaseId, ...options } as Parameters<typeof client.createSandbox>[0];
    await expect(client.createSandbox(request)).rejects.toMatchObject({
      name: "InvalidConfigurationError",
      code: "INVALID_ARGUMENT",
      message: typeof message === "string" ? message : expect.stringMatching(message),
    });
  });

  test("take new rules while they run, and explain them", async () => {
    const id = await sandbox();
    expect(await client.explainPath(id, "/secret.txt")).toEqual({
      path: "/secret.txt",
      permission: "none",
      deciding: { index: 1, rule: WRITABLE[1], reason: expect.any(String) },
      losing: [{ index: 0, rule: WRITABLE[0], reason: expect.any(String) }],
      text: expect.stringContaining("secret.txt"),
    });
    const updated = await client.updatePermissions(id, { preset: "read-only" });
    expect(updated.permissions).toEqual([{ pattern: "**/*", permission: "read", type: "glob" }]);
    expect(await client.exec(id, "cat secret.txt; echo x > a.txt")).toMatchObject({ stdout: "hidden", success: false });
    expect((await client.updatePermissions(id, [])).permissions).toEqual([]);
    expect(await client.explainPath(id, "/a.txt")).toMatchObject({ permission: "none", deciding: undefined });
  });

  test("that do not run say so", async () => {
    const { id } = await client.createSandbox({ codebaseId });
    const refused = { name: "SandboxNotRunningError", code: "SANDBOX_NOT_RUNNING" };
    await expect(client.exec(id, "true")).rejects.toMatchObject(refused);
    await expect(client.openTerminal(id, { columns: 80, rows: 24 })).rejects.toMatchObject(refused);
    await expect(client.readFileBytes(id, "a.txt")).rejects.toMatchObject(refused);
  });
});

describe("commands", () => {
  const END = {
    exitCode: 0,
    signal: undefined,
    timedOut: false,
    outOfMemory: false,
    durationMs: expect.any(Number),
    sessionClosed: false,
    syncedVersion: 0,
    syncProblems: [],
  };

  test("give what they print and how they end", async () => {
    const id = await sandbox();
    expect(await client.exec(id, "cat a.txt; echo bad >&2; exit 3")).toEqual({
      ...END,
      command: "cat a.txt; echo bad >&2; exit 3",
      success: false,
      exitCode: 3,
      stdout: "alpha",
      stderr: "bad\n",
      stdoutBytes: new Uint8Array(Buffer.from("alpha")),
      stderrBytes: new Uint8Array(Buffer.from("bad\n")),
      truncated: false,
    });
    const options = { stdin: Buffer.from([0, 255]), env: { A: "b c" }, workdir: "sub" };
    const result = await client.exec(id, ["sh", "-c", 'cat; printf "%s" "$A"; pwd'], options);
    expect(result).toMatchObject({ command: `sh -c 'cat; printf "%s" "$A"; pwd'`, success: true });
    expect(Buffer.from(result.stdoutBytes)).toEqual(
      Buffer.concat([Buffer.from([0, 255]), Buffer.from("b c/workspace/sub\n")]),
    );
  });

  test("that run out of time are results, unless they are checked", async () => {
    const id = await sandbox();
    const command = "echo so far; sleep 60";
    const timedOut = { timedOut: true, success: false, exitCode: 137, signal: "SIGKILL", stdout: "so far\n" };
    expect(await client.exec(id, command, { timeoutMs: 2_000 })).toMatchObject(timedOut);
    await expect(client.exec(id, command, { timeoutMs: 2_000, check: true })).rejects.toMatchObject({
      name: "CommandTimeoutError",
      code: "COMMAND_TIMEOUT",
      result: timedOut,
    });
    await expect(client.exec(id, "echo x; exit 4", { check: true })).rejects.toMatchObject({
      name: "CommandExecutionError",
      code: "COMMAND_FAILED",
      message: "the command ended with exit code 4: echo x; exit 4",
      result: { exitCode: 4, stdout: "x\n" },
    });
  });

  test("stream what they print, and are killed when nobody listens", async () => {
    const id = await sandbox();
    const events = await all(client.execStream(id, "echo out; sleep 0.2; echo err >&2; exit 2"));
    expect(events.map((event) => (event.kind === "exit" ? event : [event.kind, text(event.data)]))).toEqual([
      ["stdout", "out\n"],
      ["stderr", "err\n"],
      { kind: "exit", end: { ...END, exitCode: 2 } },
    ]);
    const beating = "echo x > beats; echo begun; while :; do echo x >> beats; sleep 0.01; done";
    for await (const event of client.execStream(id, beating)) {
      expect(event.kind).toBe("stdout");
      break;
    }
    const silence = "one=$(wc -l < beats); sleep 0.3; other=$(wc -l < beats); [ $one -gt 0 ] && [ $one = $other ]";
    await eventually(async () => (await client.exec(id, silence)).success);
  });

  test("take input while they run", async () => {
    const id = await sandbox();
    const stdin = (async function* () {
      yield Buffer.from("one\n");
      yield Buffer.from("two\n");
    })();
    const events = await all(client.execInteractive(id, 'while read -r line; do echo "<$line>"; done', { stdin }));
    const printed = events.map((event) => (event.kind === "exit" ? "" : text(event.data))).join("");
    expect({ printed, last: events.at(-1) }).toEqual({ printed: "<one>\n<two>\n", last: { kind: "exit", end: END } });
  });

  test("an abort kills them and throws its reason", async () => {
    const id = await sandbox();
    const leaving = new AbortController();
    const reason = new Error("enough");
    void aWhile(300).then(() => leaving.abort(reason));
    await expect(client.exec(id, "sleep 1000", { signal: leaving.signal })).rejects.toBe(reason);
  });

  test("a directory that is not there is a wrong option", async () => {
    const id = await sandbox();
    await expect(client.exec(id, "pwd", { workdir: "/no/where" })).rejects.toMatchObject({
      name: "InvalidConfigurationError",
      code: "WORKDIR_UNUSABLE",
    });
  });
});

describe("sessions", () => {
  test("keep their state from one command to the next, until they are closed", async () => {
    const id = await sandbox();
    const session = await client.createSession(id, { env: { A: "1" }, workdir: "sub", idleTimeoutMs: 600_000 });
    expect(session).toEqual({
      id: expect.stringMatching(/^[a-z]+_[0-9a-f]+$/),
      sandboxId: id,
      status: "active",
      shell: expect.stringContaining("sh"),
      closeReason: "",
      createdAt: MOMENT,
    });
    expect(await client.sessionExec(session.id, "B=$A; cd ..")).toMatchObject({ success: true });
    expect(await client.sessionExec(session.id, 'echo "$B"; pwd')).toMatchObject({ stdout: "1\n/workspace\n" });
    const events = await all(client.sessionExecStream(session.id, "echo streamed; (exit 3)"));
    expect(events.map((event) => (event.kind === "exit" ? event.end.exitCode : text(event.data)))).toEqual([
      "streamed\n",
      3,
    ]);
    await expect(client.sessionExec(session.id, "(exit 5)", { check: true })).rejects.toMatchObject({
      name: "CommandExecutionError",
      result: { exitCode: 5 },
    });
    expect(await client.getSession(session.id)).toEqual(session);
    expect(await client.listSessions(id)).toEqual([session]);
    expect(await client.sessionExec(session.id, "exit 6")).toMatchObject({ exitCode: 6, sessionClosed: true });
    const closed = { ...session, status: "closed", closeReason: "exited", closedAt: MOMENT };
    expect(await client.getSession(session.id)).toEqual(closed);
    await expect(client.sessionExec(session.id, "true")).rejects.toMatchObject({
      name: "SessionClosedError",
      code: "SESSION_CLOSED",
    });
  });

  test("are gone when they are closed from outside", async () => {
    const id = await sandbox();
    const [one, other] = [await client.createSession(id), await client.createSession(id)];
    await client.closeSession(one.id);
    await client.destroySession(other.id);
    expect(await client.listSessions(id)).toEqual([]);
    await expect(client.getSession(one.id)).rejects.toMatchObject({
      name: "SessionNotFoundError",
      code: "SESSION_NOT_FOUND",
    });
  });
});

describe("changes", () => {
  test("are listed, shown, tried, applied and discarded", async () => {
    const id = await sandbox();
    const { version } = await client.getCodebase(codebaseId);
    await client.exec(id, "echo new > new.txt; mkdir dir; echo more >> a.txt");
    const changes = [
      { kind: "modified", path: "/a.txt", oldPath: "", type: "file", size: 10, sensitive: false },
      { kind: "added", path: "/dir", oldPath: "", type: "directory", size: 0, sensitive: false },
      { kind: "added", path: "/new.txt", oldPath: "", type: "file", size: 4, sensitive: false },
    ];
    expect(await client.listChanges(id, { pageSize: 2 }).toArray()).toEqual(changes);
    const diffs = await all(client.diffChanges(id, { paths: ["/new.txt"] }));
    expect(diffs).toEqual([{ change: changes[2], unified: expect.stringContaining("+new\n"), binary: false }]);
    const outcome = { applied: true, reason: "", sensitive: false, conflict: false };
    const trial = await client.applyChanges(id, { paths: ["/new.txt"], dryRun: true });
    expect(trial).toMatchObject({ version: 0, outcomes: [{ change: changes[2] }] });
    expect(await client.applyChanges(id, { paths: ["/new.txt"] })).toEqual({
      version: version + 1,
      outcomes: [{ ...outcome, change: changes[2] }],
    });
    expect(text(await client.downloadFile(codebaseId, "new.txt"))).toBe("new\n");
    expect(await client.discardChanges(id, { paths: ["/a.txt"] })).toEqual([changes[0]]);
    expect(await client.listChanges(id).toArray()).toEqual([changes[1]]);
    await client.deleteFile(codebaseId, "new.txt");
  });
});

describe("files of a sandbox", () => {
  test("are written, read, looked at, moved and removed as a process inside would", async () => {
    const id = await sandbox();
    const file = { size: 5, modifiedAt: MOMENT, target: "", sha256: "", permission: "write" };
    const made = { ...file, path: "dir/x.txt", name: "x.txt", kind: "file", mode: 0o644 };
    const directory = { ...file, path: "dir", name: "dir", kind: "directory", mode: 0o755 };
    expect(await client.makeDirectory(id, "dir")).toEqual({ ...directory, size: expect.any(Number) });
    expect(await client.writeFile(id, "dir/x.txt", "hello")).toEqual(made);
    expect(await client.writeFile(id, "dir/x.txt", " there", { append: true })).toEqual({ ...made, size: 11 });
    expect(text(await client.readFileBytes(id, "dir/x.txt"))).toBe("hello there");
    const pieces = await all(client.readFile(id, "dir/x.txt"));
    expect(Buffer.concat(pieces).toString()).toBe("hello there");
    expect(await client.statFile(id, "/a.txt")).toEqual({
      ...file,
      path: "/a.txt",
      name: "a.txt",
      kind: "file",
      mode: 0o644,
    });
    expect(await client.statFile(id, "sub")).toMatchObject({ kind: "directory", permission: "read" });
    const listed = await client.listDirectory(id, "", { recursive: true });
    expect(listed.map(({ path }) => path)).toEqual(["a.txt", "dir", "dir/x.txt", "sub", "sub/b.txt"]);
    expect(await client.moveFile(id, "dir/x.txt", "y.txt")).toMatchObject({ path: "y.txt", size: 11 });
    await client.removeFile(id, "y.txt");
    await client.removeFile(id, "dir", { recursive: true });
    expect((await client.listDirectory(id, "/")).map(({ path }) => path)).toEqual(["/a.txt", "/sub"]);
  });

  test("that are hidden are not there, and those that may not be written are refused", async () => {
    const id = await sandbox();
    const absent = { name: "FileNotFoundError", code: "FILE_NOT_FOUND" };
    await expect(client.readFile(id, "secret.txt").getReader().read()).rejects.toMatchObject(absent);
    await expect(client.statFile(id, "secret.txt")).rejects.toMatchObject(absent);
    await expect(client.writeFile(id, "sub/b.txt", "x")).rejects.toMatchObject({
      name: "PermissionDeniedError",
      code: "FILE_PERMISSION_DENIED",
    });
    await expect(client.makeDirectory(id, "sub")).rejects.toMatchObject({ name: "CodebaseError", code: "FILE_EXISTS" });
  });

  test("are watched from the moment that the watch is on", async () => {
    const id = await sandbox();
    const watch = await client.watchFiles(id, "/");
    await client.exec(id, "echo x > seen.txt; mv seen.txt there.txt; chmod 600 there.txt; rm there.txt");
    const told: string[] = [];
    for await (const { eventType, filename, cause } of watch) {
      told.push(`${eventType} ${filename} ${cause}`);
      if (cause === "removed") break;
    }
    expect(told).toEqual([
      "rename seen.txt made",
      "change seen.txt written",
      "rename seen.txt moved-away",
      "rename there.txt moved-here",
      "change there.txt attributes",
      "rename there.txt removed",
    ]);
  });

  test("have extended attributes, replaced by their prefix, told where they are asked for", async () => {
    const id = await sandbox();
    await client.exec(id, "mkdir -p marked && touch marked/none");
    const write = (attributes: Record<string, string>) =>
      client.writeFile(id, "marked/a.txt", "a", { attributes, attributePrefix: "mark." });
    await write({ "mark.one": "1", "mark.two": "ü", other: "stays" });
    await write({ "mark.two": "2" });
    const attributes = { "mark.two": "2", other: "stays" };
    expect(await client.statFile(id, "marked/a.txt", { attributes: true })).toMatchObject({ attributes });
    expect(await client.statFile(id, "marked/a.txt")).not.toHaveProperty("attributes");
    const listed = await client.listDirectory(id, "marked", { attributes: true });
    expect(listed.map((entry) => entry.attributes)).toEqual([attributes, {}]);
    const inside =
      "perl -e '$b = q( ) x 99; $n = q(user.mark.two); print syscall(191, $ARGV[0], $n, $b, 99)' marked/a.txt";
    if (process.arch === "x64") expect((await client.exec(id, inside)).stdout).toBe("1");
    await expect(write({ "": "x" })).rejects.toThrow(/name of an attribute/);
  });
});

describe("a terminal", () => {
  test("takes keys, has a size, and ends with its program", async () => {
    const id = await sandbox();
    const terminal = await client.openTerminal(id, { argv: ["sh"], columns: 100, rows: 30, env: { PS1: "> " } });
    await terminal.resize({ columns: 120, rows: 40 });
    await terminal.write("stty size; exit 7\n");
    const output = Buffer.concat(await all(terminal.output)).toString();
    expect(output).toContain("40 120");
    expect(await terminal.exit).toEqual({ exitCode: 7 });
    await terminal.write("late");
  });

  test("that cannot be opened says so where its end is waited for, and where its output is read", async () => {
    const id = await sandbox();
    const terminal = await client.openTerminal(id, { workdir: "/no/where", columns: 80, rows: 24 });
    const refused = { name: "InvalidConfigurationError", code: "WORKDIR_UNUSABLE" };
    await expect(terminal.exit).rejects.toMatchObject(refused);
    await expect(all(terminal.output)).rejects.toMatchObject(refused);
    await terminal.write("nobody reads this");
  });

  test("that is closed ends what runs in it", async () => {
    const id = await sandbox();
    const terminal = await client.openTerminal(id, { argv: ["cat"], columns: 80, rows: 24 });
    await terminal.close();
    expect(await terminal.exit).toEqual({ exitCode: 129 });
    expect(await all(terminal.output)).toEqual([]);
  });
});

describe("the audit log", () => {
  test("is listed, and followed from where one was", async () => {
    const before = new Date();
    const { id } = await client.createSandbox({ codebaseId });
    const listed = await client.listEvents({ sandboxId: id, after: before, pageSize: 1 }).toArray();
    expect(listed).toEqual([
      {
        sequence: expect.any(Number),
        time: MOMENT,
        type: "sandbox_created",
        level: "info",
        ownerId: "tester",
        keyId: "",
        sandboxId: id,
        codebaseId,
        sessionId: "",
        data: expect.any(Object),
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
    expect(await client.listEvents({ sandboxId: id, before }).toArray()).toEqual([]);
    const watch = client.watchEvents({
      sandboxId: id,
      afterSequence: listed[0]!.sequence,
      types: ["sandbox_destroyed"],
    });
    const next = watch.next();
    await client.destroySandbox(id);
    expect((await next).value).toMatchObject({ type: "sandbox_destroyed", sandboxId: id });
    await watch.return();
  });
});

test("the server says what it is", async () => {
  expect(await client.getServerInfo()).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    runtimes: expect.arrayContaining(["bwrap"]),
    degradations: expect.any(Array),
    keysRequired: false,
    ownerId: "",
    role: "admin",
  });
});
