import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { mountFuse, syscalls, unmountFuse } from "@agentfense/fuse";
import type { Rule } from "@agentfense/permission";
import { afterAll, beforeAll, expect, test } from "vitest";
import { IsolationError } from "../../../src/isolation/backend/isolation-error.ts";
import { MountHost, type WorkspaceMount } from "../../../src/isolation/mount/host.ts";
import { MountedFiles } from "../../../src/isolation/view/files.ts";
import { KernelWatch } from "../../../src/isolation/view/kernel-watch.ts";
import { ViewThread } from "../../../src/isolation/view/thread.ts";

const RULES: readonly Rule[] = [
  { pattern: "**/*", permission: "write" },
  { pattern: "/read-only/**", permission: "read", priority: 10 },
  { pattern: "/view-only/**", permission: "view", priority: 10 },
  { pattern: "**/secret*", permission: "none", priority: 20 },
];

let root: string;
let host: MountHost;
let mount: WorkspaceMount;
let thread: ViewThread;
let files: MountedFiles;
const owner = { uid: 4242, gid: 4243 };

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "agentfense-view-"));
  for (const name of ["lower/src", "lower/read-only", "lower/view-only", "delta", "mnt", "outside"]) {
    mkdirSync(join(root, name), { recursive: true });
  }
  writeFileSync(join(root, "outside/host-file"), "the host's");
  const put = (path: string, content: string): void => writeFileSync(join(root, "lower", path), content);
  put("src/a.ts", "content of a");
  put("src/secret.ts", "hidden");
  put("read-only/r", "readable");
  put("view-only/v", "unreadable");
  for (const [link, target] of Object.entries({
    relative: "src/a.ts",
    "src/up": "../read-only/r",
    absolute: "/workspace/src/a.ts",
    "out-absolute": join(root, "outside/host-file"),
    "out-relative": "../outside/host-file",
    "out-climbing": "src/../../outside/host-file",
    "out-directory": "..",
    loop: "loop",
    dangling: "src/nothing-yet",
    "to-secret": "src/secret.ts",
    "to-directory": "src",
  })) {
    symlinkSync(target, join(root, "lower", link));
  }
  host = await MountHost.start();
  mount = await host.mount({
    mountPoint: join(root, "mnt"),
    lowers: [join(root, "lower")],
    delta: join(root, "delta"),
    rules: RULES,
    owner,
  });
  thread = new ViewThread();
  files = filesOf(thread, () => mount);
});

afterAll(async () => {
  await files.close();
  await thread[Symbol.asyncDispose]();
  await host.close();
  rmSync(root, { recursive: true, force: true });
});

function filesOf(
  view: ViewThread,
  mountOf: () => Pick<WorkspaceMount, "mountPoint" | "outside"> | undefined,
): MountedFiles {
  return new MountedFiles({
    thread: view,
    mount: mountOf,
    target: "/workspace",
    kernelWatch: new KernelWatch(),
    rules: () => RULES,
  });
}

async function text(path: string): Promise<string> {
  return Buffer.concat(await Array.fromAsync(await files.read(path))).toString();
}

async function* bytes(...pieces: (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const piece of pieces) yield Buffer.from(piece);
}

/** The errno a call fails with. */
async function errno(call: Promise<unknown>): Promise<string | undefined> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error === undefined) return undefined;
  if (!(error instanceof IsolationError) || error.code !== "FILE_FAILED") throw error;
  expect(error.message).not.toContain(root);
  return error.errno;
}

test("one file has three spellings", async () => {
  for (const path of ["/workspace/src/a.ts", "/src/a.ts", "src/a.ts", "./src//a.ts"]) {
    expect(await text(path)).toBe("content of a");
  }
  expect((await files.stat("/workspace")).kind).toBe("directory");
  expect(await errno(files.stat("/workspaces/src"))).toBe("ENOENT");
});

test("paths that cannot be right are refused", async () => {
  for (const path of ["../x", "src/../../x", "a\0b", "x".repeat(300), `${"d/".repeat(3000)}x`, "\ud800"]) {
    expect(await errno(files.stat(path))).toBe("EINVAL");
  }
});

test("every rule applies", async () => {
  expect(await errno(text("src/secret.ts"))).toBe("ENOENT");
  expect(await errno(text("to-secret"))).toBe("ENOENT");
  expect(await errno(text("view-only/v"))).toBe("EACCES");
  expect((await files.stat("view-only/v")).size).toBe("unreadable".length);
  expect(await text("read-only/r")).toBe("readable");
  expect(await errno(files.write("read-only/r", bytes("x")))).toBe("EACCES");
  expect(await errno(files.write("src/secret-new", bytes("x")))).toBe("EACCES");
  expect(await errno(files.remove("read-only/r"))).toBe("EACCES");
  expect(await errno(files.move("read-only/r", "mine"))).toBe("EACCES");
  expect((await files.list("src")).map(({ path }) => path)).toEqual(["/src/a.ts", "/src/up"]);
});

test("links are followed within the workspace, and never out of it", async () => {
  expect(await text("relative")).toBe("content of a");
  expect(await text("absolute")).toBe("content of a");
  expect(await text("src/up")).toBe("readable");
  expect(await text("to-directory/a.ts")).toBe("content of a");
  for (const path of ["out-absolute", "out-relative", "out-climbing"]) {
    expect(await errno(text(path))).toBe("EXDEV");
    expect(await errno(files.write(path, bytes("overwritten")))).toBe("EXDEV");
  }
  expect(await errno(files.list("out-directory"))).toBe("EXDEV");
  expect(await errno(files.write("out-directory/file", bytes("x")))).toBe("EXDEV");
  expect(await errno(text("loop"))).toBe("ELOOP");
  expect(readFileSync(join(root, "outside/host-file"), "utf8")).toBe("the host's");
  expect(await files.stat("out-absolute")).toMatchObject({ kind: "symlink", target: join(root, "outside/host-file") });
  await files.write("dangling", bytes("made"));
  expect(await text("src/nothing-yet")).toBe("made");
  await files.remove("src/nothing-yet");
});

test("content comes and goes in pieces", async () => {
  const big = Buffer.alloc(3_000_001, "abcdefg");
  const written = await files.write("big", bytes(big.subarray(0, 1_000_000), big.subarray(1_000_000)), { mode: 0o600 });
  expect(written).toMatchObject({ path: "/big", kind: "file", size: big.length, mode: 0o600 });
  const pieces = await Array.fromAsync(await files.read("big"));
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(256 * 1024);
  expect(Buffer.concat(pieces).equals(big)).toBe(true);
  await files.write("big", bytes(" and more"), { append: true });
  expect((await files.stat("big")).size).toBe(big.length + 9);
  await files.write("big", bytes("short"));
  expect(await text("big")).toBe("short");
  const [uid] = execFileSync("stat", ["-c", "%u", join(mount.mountPoint, "big")])
    .toString()
    .trim()
    .split(" ");
  expect(uid).toBe("4242");
});

test("only regular files have content", async () => {
  execFileSync("mkfifo", [join(mount.mountPoint, "pipe")]);
  expect(await errno(text("src"))).toBe("EISDIR");
  expect(await errno(text("pipe"))).toBe("EINVAL");
  expect(await errno(files.write("pipe", bytes("x")))).toBe("EINVAL");
  expect(await errno(files.write("src", bytes("x")))).toBe("EISDIR");
  expect(await errno(text("nowhere"))).toBe("ENOENT");
  expect(await errno(text("src/a.ts/x"))).toBe("ENOTDIR");
});

test("directories are made, moved and removed", async () => {
  expect(await errno(files.makeDirectory("x/y/z"))).toBe("ENOENT");
  expect(await files.makeDirectory("x/y/z", { recursive: true })).toMatchObject({
    path: "/x/y/z",
    kind: "directory",
    mode: 0o755,
  });
  expect(await errno(files.makeDirectory("x"))).toBe("EEXIST");
  await files.makeDirectory("x/y", { recursive: true });
  await files.write("x/y/z/f", bytes("deep"));
  symlinkSync("../../../src", join(mount.mountPoint, "x/y/l"));
  expect((await files.list("x", { recursive: true })).map(({ path, kind }) => `${path} ${kind}`)).toEqual([
    "/x/y directory",
    "/x/y/l symlink",
    "/x/y/z directory",
    "/x/y/z/f file",
  ]);
  expect(await files.move("x/y", "moved")).toMatchObject({ path: "/moved", kind: "directory" });
  expect(await errno(files.remove("moved"))).toBe("ENOTEMPTY");
  await files.remove("moved", { recursive: true });
  expect(await errno(files.stat("moved"))).toBe("ENOENT");
  expect(await text("src/a.ts")).toBe("content of a");
  expect(await errno(files.remove("/"))).toBe("EBUSY");
  expect(await errno(files.list("src/a.ts"))).toBe("ENOTDIR");
  await files.remove("x", { recursive: true });
});

test("a signal ends a reading and a writing, and their files are closed", async () => {
  await files.write("long", bytes(Buffer.alloc(2_000_000)));
  const controller = new AbortController();
  const content = await files.read("long", { signal: controller.signal });
  const reading = (async () => {
    for await (const _piece of content) controller.abort();
  })();
  await expect(reading).rejects.toMatchObject({ code: "CANCELLED" });
  const later = new AbortController();
  async function* endless(): AsyncGenerator<Buffer> {
    for (let index = 0; ; index++) {
      if (index === 3) later.abort();
      yield Buffer.alloc(1000);
    }
  }
  await expect(files.write("endless", endless(), { signal: later.signal })).rejects.toMatchObject({
    code: "CANCELLED",
  });
  // Nothing of ours is open for writing: it can be discarded.
  expect((await mount.discard(["/endless"])).failed).toEqual([]);
});

test("a mount that never answers holds up nobody else", async () => {
  const stuckPoint = join(root, "stuck");
  mkdirSync(stuckPoint);
  const privileged = process.geteuid?.() === 0;
  const device = await mountFuse({ mountPoint: stuckPoint, name: "agentfense", allowOther: privileged, privileged });
  const impatient = new ViewThread({ stuckAfterMs: 400 });
  const at = (mountPoint: string): MountedFiles =>
    filesOf(impatient, () => ({ mountPoint, outside: dirname(mountPoint) }));
  try {
    const stuck = errno(at(stuckPoint).stat("x"));
    const fine = at(mount.mountPoint).stat("src/a.ts");
    expect(await stuck).toBe("ETIMEDOUT");
    expect((await fine).size).toBe("content of a".length);
    expect((await at(mount.mountPoint).stat("src/a.ts")).size).toBe("content of a".length);
  } finally {
    syscalls.close(device.fd); // ends whoever waits
    await unmountFuse(stuckPoint, { privileged });
    await impatient[Symbol.asyncDispose]();
  }
});

test("a mount point without its mount is not looked into", async () => {
  const empty = join(root, "empty");
  mkdirSync(empty);
  for (const mountPoint of [empty, join(empty, "0")]) {
    const nowhere = filesOf(thread, () => ({ mountPoint, outside: root }));
    expect(await errno(nowhere.write("planted", bytes("x")))).toBe("ENOTCONN");
  }
});

test("a runtime without mounts says so", async () => {
  expect(await errno(filesOf(thread, () => undefined).stat("x"))).toBe("ENOTSUP");
});
