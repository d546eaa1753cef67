import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { ALICE, refusal, SandboxesFixture } from "./fixture.ts";

// Files through the view of a running sandbox: every rule applies, with the answers a process inside gets.

let place: SandboxesFixture;
let id: string;

beforeAll(async () => {
  place = await SandboxesFixture.open({ runtime: "bwrap" });
  await place.upload({
    "a.txt": "alpha\n",
    "ro/b.txt": "beta\n",
    "listed/c.txt": "gamma\n",
    "secret/key": "hidden\n",
    "secret/public": "shown\n",
  });
  id = await place.running({
    rules: [
      { pattern: "**/*", permission: "write" },
      { pattern: "/ro/**", permission: "read" },
      { pattern: "/listed/**", permission: "view" },
      { pattern: "/secret/**", permission: "none" },
      { pattern: "/secret/public", permission: "read" },
    ],
  });
});

afterAll(async () => {
  await place[Symbol.asyncDispose]();
});

async function* chunks(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

const read = async (path: string): Promise<string> =>
  Buffer.concat(await Array.fromAsync(await place.sandboxes.readFile(ALICE, id, path))).toString();
const write = (path: string, text: string, options = { mode: 0, append: false }) =>
  place.sandboxes.writeFile(ALICE, id, path, chunks(text), options);
const code = async (work: Promise<unknown>): Promise<string> => (await refusal(work)).code;

describe("reading", () => {
  test("gives what may be read, by any of its names", async () => {
    for (const path of ["/a.txt", "a.txt", "/workspace/a.txt"]) expect(await read(path)).toBe("alpha\n");
    expect(await read("secret/public")).toBe("shown\n");
  });

  test("refuses as the file system does inside", async () => {
    expect(await code(read("/secret/key"))).toBe("FILE_NOT_FOUND");
    expect(await code(read("/missing"))).toBe("FILE_NOT_FOUND");
    expect(await code(read("/listed/c.txt"))).toBe("FILE_PERMISSION_DENIED");
    expect(await code(read("/ro"))).toBe("FILE_WRONG_KIND");
    for (const path of ["", "../etc/passwd", "a\0b", `/${"x".repeat(5000)}`]) {
      expect(await code(read(path))).toBe("INVALID_ARGUMENT");
    }
  });

  test("lists what is visible, each with its level", async () => {
    const entries = await place.sandboxes.listDirectory(ALICE, id, "", { recursive: true });
    expect(entries.map(({ path, kind, permission }) => `${path} ${kind} ${permission}`)).toEqual([
      "/a.txt file write",
      "/listed directory view",
      "/listed/c.txt file view",
      "/ro directory read",
      "/ro/b.txt file read",
      "/secret directory view",
      "/secret/public file read",
    ]);
    expect(await place.sandboxes.stat(ALICE, id, "/ro/b.txt")).toMatchObject({
      path: "/ro/b.txt",
      kind: "file",
      size: 5,
      permission: "read",
    });
    expect(await code(place.sandboxes.stat(ALICE, id, "/secret/key"))).toBe("FILE_NOT_FOUND");
  });

  test("follows no link out of the workspace", async () => {
    await place.run(id, "ln -s /etc/passwd out; ln -s a.txt in");
    expect(await read("in")).toBe("alpha\n");
    expect(await code(read("out"))).not.toBe("INTERNAL");
  });
});

describe("writing", () => {
  test("arrives in the sandbox and, as after a command, in the codebase", async () => {
    expect(await write("/new.txt", "one\n")).toMatchObject({ path: "/new.txt", size: 4, permission: "write" });
    await write("/new.txt", "two\n", { mode: 0, append: true });
    expect((await place.run(id, "cat new.txt; stat -c %a new.txt")).stdout).toBe("one\ntwo\n644\n");
    expect((await place.tree())["new.txt"]).toBe("one\ntwo\n");
    await write("/run.sh", "#!/bin/sh\n", { mode: 0o755, append: false });
    expect((await place.run(id, "stat -c %a run.sh")).stdout).toBe("755\n");
    const [event] = await place.events("file_written");
    expect(event).toMatchObject({ keyId: "key_a", data: { path: "/workspace/new.txt", size: 4 } });
  });

  test("refuses as the file system does inside", async () => {
    expect(await code(write("/ro/b.txt", "x"))).toBe("FILE_PERMISSION_DENIED");
    expect(await code(write("/secret/key", "x"))).toBe("FILE_PERMISSION_DENIED");
    expect(await code(write("/no/such/directory", "x"))).toBe("FILE_NOT_FOUND");
    expect(await code(write("/", "x"))).toBe("INVALID_ARGUMENT");
    expect(await code(write("/x", "x", { mode: 0o4755, append: false }))).toBe("INVALID_ARGUMENT");
    expect(await read("ro/b.txt")).toBe("beta\n");
  });

  test("makes, moves and removes", async () => {
    const { sandboxes } = place;
    expect(await sandboxes.makeDirectory(ALICE, id, "/d/e", { recursive: true })).toMatchObject({ kind: "directory" });
    await sandboxes.makeDirectory(ALICE, id, "/d/e", { recursive: true });
    expect(await code(sandboxes.makeDirectory(ALICE, id, "/d", { recursive: false }))).toBe("FILE_EXISTS");
    await write("/d/e/f", "f");
    expect(await sandboxes.move(ALICE, id, "/d/e/f", "/d/g")).toMatchObject({ path: "/d/g", size: 1 });
    expect(await code(sandboxes.move(ALICE, id, "/ro/b.txt", "/b"))).toBe("FILE_PERMISSION_DENIED");
    expect(await code(sandboxes.remove(ALICE, id, "/d", { recursive: false }))).toBe("FILE_WRONG_KIND");
    await sandboxes.remove(ALICE, id, "/d", { recursive: true });
    expect(await code(sandboxes.stat(ALICE, id, "/d"))).toBe("FILE_NOT_FOUND");
    expect(Object.keys(await place.tree())).not.toContain("d");
  });
});

describe("rules", () => {
  test("are told apart: refusals are in the audit log with the rule that decided", async () => {
    await place.run(id, "cat listed/c.txt");
    await eventually(async () =>
      expect((await place.events("permission_denied")).map(({ data }) => data)).toContainEqual(
        expect.objectContaining({
          path: "/workspace/listed/c.txt",
          operation: "open",
          permission: "view",
          rule: 2,
          pattern: "/listed/**",
        }),
      ),
    );
  });

  test("explain themselves", async () => {
    expect(await place.sandboxes.explain(ALICE, id, "secret/key")).toMatchObject({
      path: "/secret/key",
      permission: "none",
      deciding: { index: 3, rule: { pattern: "/secret/**" } },
      losing: [{ index: 0 }],
    });
    expect(await code(place.sandboxes.explain(ALICE, id, ""))).toBe("INVALID_ARGUMENT");
  });

  test("change while it runs, and the change is on record and outlives a stop", async () => {
    const other = await place.running();
    expect((await place.run(other, "cat a.txt")).stdout).toBe("alpha\n");
    const record = await place.sandboxes.updatePermissions(ALICE, other, {
      rules: [{ pattern: "/ro/**", permission: "read" }],
      preset: "",
    });
    expect(record.rules).toEqual([{ pattern: "/ro/**", permission: "read", type: "glob" }]);
    expect((await place.run(other, "cat a.txt; ls")).stdout).toBe("ro\n");
    expect((await place.events("permissions_updated"))[0]).toMatchObject({ sandboxId: other, keyId: "key_a" });
    await place.sandboxes.stop(ALICE, other);
    await place.sandboxes.start(ALICE, other);
    expect((await place.run(other, "cat a.txt; ls")).stdout).toBe("ro\n");
    await place.sandboxes.stop(ALICE, other);
    await place.sandboxes.updatePermissions(ALICE, other, { rules: [], preset: "full-access" });
    await place.sandboxes.start(ALICE, other);
    expect((await place.run(other, "cat a.txt")).stdout).toBe("alpha\n");
  });
});

describe("a real shell", () => {
  test("that ends closes its session, which says why", async () => {
    const { id: sessionId } = await place.sandboxes.createSession(ALICE, id, {
      shell: "",
      env: { A: "1" },
      workdir: "",
    });
    const call = (command: string) => place.sandboxes.sessionExec(ALICE, sessionId, { command });
    expect((await call("cd ro; B=2; echo $A")).stdout.toString()).toBe("1\n");
    expect((await call("echo $B; pwd")).stdout.toString()).toBe("2\n/workspace/ro\n");
    expect(await call("exit 3")).toMatchObject({ exitCode: 3, sessionClosed: true });
    expect(await refusal(call("true"))).toEqual({
      code: "SESSION_CLOSED",
      message: "session is closed: its shell ended",
    });
    expect(await place.sandboxes.getSession(ALICE, sessionId)).toMatchObject({
      status: "CLOSED",
      closeReason: "exited",
    });
  });

  test("in a terminal syncs what it wrote when it ends", async () => {
    const terminal = await place.sandboxes.openTerminal(ALICE, id, {
      argv: ["sh", "-c", "read line; echo $line >typed.txt; stty size"],
      env: {},
      workdir: "",
      size: { columns: 91, rows: 17 },
    });
    await terminal.write(Buffer.from("hello\n"));
    const output = Buffer.concat(await Array.fromAsync(terminal.output)).toString();
    expect(output).toContain("17 91");
    expect(await terminal.exit).toMatchObject({ exitCode: 0, syncedVersion: expect.any(Number) });
    expect((await place.tree())["typed.txt"]).toBe("hello\n");
  });
});
