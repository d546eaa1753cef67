import { execFileSync } from "node:child_process";
import { chmodSync, linkSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { failureOf } from "../../support/grpc-client.ts";
import { type Levels, serveProjects, stateOf } from "../../support/project.ts";
import { rounds } from "../../support/rounds.ts";
import { Canary } from "./canary.ts";

// Something got into the delta, or onto the codebase's disk, that no call of ours puts there. It is there by our own hands,
// in the server's directories of this test.

const ground = serveProjects();
/** Others can plant neither devices nor owners nor capabilities. */
const IS_ROOT = process.getuid?.() === 0;
const MANUAL = { sync: "SYNC_MODE_MANUAL" };
const PROTECTED: Levels = { "/hidden/**": "none", "/view.txt": "view", "/ro.txt": "read", "/ro/**": "read" };
const FILES = {
  "allowed.txt": "allowed\n",
  "hidden/secret": "secret\n",
  "ro.txt": "ro\n",
  "ro/inner": "ro\n",
  "view.txt": "view\n",
};

function canary(): Canary {
  const made = new Canary();
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

function plant(directory: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(directory, path, ".."), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
}

const PLANTED = {
  "allowed.txt": "changed\n",
  "hidden/secret": "overwritten\n",
  "hidden/new": "planted\n",
  "ro.txt": "overwritten\n",
  "ro/inner": "overwritten\n",
  "ro/new": "planted\n",
  "view.txt": "overwritten\n",
};

test("SYNC-01 what is planted in the delta at hidden, view and read paths is not synced, and reported", async () => {
  const project = await ground.project(FILES);
  const id = await project.sandbox(PROTECTED, MANUAL);
  await project.stop(id);
  plant(project.delta(id), PLANTED);
  const { outcomes } = await project.apply(id);
  expect(await project.state()).toEqual({
    ...FILES,
    "allowed.txt": "changed\n",
    hidden: "/",
    ro: "/",
  });
  expect(Object.fromEntries(outcomes.map(({ change, applied, reason }) => [change.path, applied || reason]))).toEqual({
    "/allowed.txt": true,
    "/ro.txt": "level read",
    "/ro/inner": "level read",
    "/ro/new": "level read",
  });
  expect((await project.refusals(id)).sort()).toEqual([
    "/workspace/hidden/new: the rules hide this path",
    "/workspace/hidden/secret: the rules hide this path",
    "/workspace/ro.txt: level read",
    "/workspace/ro/inner: level read",
    "/workspace/ro/new: level read",
    "/workspace/view.txt: level view",
  ]);
});

test("SYNC-01 nor by the sync after a command, or when the sandbox stops", async () => {
  const project = await ground.project(FILES);
  const id = await project.sandbox(PROTECTED);
  plant(project.delta(id), PLANTED);
  const kept = { ...FILES, "allowed.txt": "changed\n", hidden: "/", ro: "/" };
  const { sync_problems } = await project.run(id, "true");
  expect(await project.state()).toEqual(kept);
  // The agent may read this answer: nothing hidden is in it.
  expect(sync_problems.filter((problem) => problem.includes("hidden"))).toEqual([]);
  expect(sync_problems).toEqual(expect.arrayContaining(["/workspace/ro.txt: level read"]));
  plant(project.delta(id), { "hidden/again": "x\n", "ro.txt": "again\n" });
  await project.stop(id);
  expect(await project.state()).toEqual(kept);
});

test("SYNC-02 a whiteout or opaque mark where the sandbox may not write deletes nothing, and is reported", async () => {
  const project = await ground.project({ ...FILES, "mixed/mine": "m\n", "mixed/ro": "r\n" });
  const id = await project.sandbox({ ...PROTECTED, "/mixed/ro": "read" }, MANUAL);
  await project.stop(id);
  const names = [".wh.allowed.txt", ".wh.hidden", ".wh.ro.txt", ".wh.view.txt", "ro/.wh.inner", "mixed/.wh..wh..opq"];
  plant(project.delta(id), Object.fromEntries(names.map((name) => [name, ""])));
  const { outcomes } = await project.apply(id);
  const { "allowed.txt": _deleted, ...kept } = FILES;
  expect(await project.state()).toEqual({ ...kept, hidden: "/", mixed: "/", "mixed/ro": "r\n", ro: "/" });
  const told = outcomes.filter(({ applied }) => !applied).map(({ change }) => change.path);
  expect(told.sort()).toEqual(["/mixed/ro", "/ro.txt", "/ro/inner"]);
  expect((await project.refusals(id)).map((line) => line.split(":")[0]).sort()).toEqual([
    "/workspace/hidden",
    "/workspace/mixed/ro",
    "/workspace/ro.txt",
    "/workspace/ro/inner",
    "/workspace/view.txt",
  ]);
});

test("SYNC-04 the agent cannot make a name that would be taken for a whiteout, by any call", async () => {
  const project = await ground.project({ "notes.txt": "n\n", ".wh.notes.txt": "plain content\n", "d/x": "x\n" });
  const id = await project.sandbox({ "/notes.txt": "read" });
  const attempts = [
    "echo >.wh.d",
    "mkdir .wh.notes.txt.d",
    "ln -s x .wh.notes.txt2",
    "mkfifo .wh.d",
    "echo x >f; mv f .wh.notes.txt3",
    "ln f .wh.d",
    "echo >d/.wh..wh..opq",
    "mkdir d2; mv d2 .wh.d2",
    "cp f ./.wh..wh.long.$(printf notes.txt | sha256sum | cut -c-64)",
  ];
  const { stdout } = await project.run(id, attempts.map((one) => `(${one}) 2>/dev/null; echo $?`).join("\n"));
  expect(stdout).not.toMatch(/^0$/m);
  const path = ".wh.d";
  const write = project.grpc.send("SandboxService", "WriteFile", [{ metadata: { sandbox_id: id, path } }]);
  expect((await failureOf(write)).code).toBe(7);
  const mkdir = { sandbox_id: id, path: "d/.wh..wh..opq" };
  expect((await project.grpc.failure("SandboxService", "MakeDirectory", mkdir)).code).toBe(7);
  expect(await project.state()).toMatchObject({ "notes.txt": "n\n", d: "/", "d/x": "x\n" });
  // What the codebase has under such a name is content like any other; even deleting it deletes nothing else.
  expect(await project.state()).toMatchObject({ ".wh.notes.txt": "plain content\n" });
  await project.run(id, "rm -f .wh.notes.txt");
  expect(await project.state()).toMatchObject({ "notes.txt": "n\n", "d/x": "x\n" });
});

test("SYNC-05 a whiteout of nothing, of the directory or of its parent deletes nothing", async () => {
  const project = await ground.project({ "a.txt": "a\n", "d/e/x": "x\n" });
  const neighbour = await ground.project({ "n.txt": "n\n" });
  const id = await project.sandbox({}, MANUAL);
  await project.stop(id);
  const marks = [".wh.", ".wh..", ".wh..."];
  for (const directory of ["", "d/", "d/e/"]) {
    plant(project.delta(id), Object.fromEntries(marks.map((name) => [`${directory}${name}`, ""])));
  }
  // The long form of a whiteout has its name as content.
  const long = ["", ".", "..", "..", "d/e", "/", "../../neighbour"];
  plant(project.delta(id), Object.fromEntries(long.map((name, index) => [`.wh..wh.long.${index}`, name])));
  const before = await project.state();
  const { version } = await project.apply(id);
  expect(version).toBe(0);
  expect(await project.state()).toEqual(before);
  expect(await neighbour.state()).toEqual({ "n.txt": "n\n" });
  expect((await project.refusals(id)).length).toBeGreaterThanOrEqual(9);
});

test("SYNC-13 a file that is swapped for a link while it is copied gains nothing", async () => {
  const secret = canary();
  const project = await ground.project({ "a.txt": "a\n" });
  const id = await project.sandbox({}, MANUAL);
  await project.stop(id);
  const delta = project.delta(id);
  const aside = join(ground.server.directory, "aside");
  mkdirSync(aside);
  const swapFile = (turn: number): void => {
    writeFileSync(join(aside, "mine"), "mine\n".repeat(2000));
    renameSync(join(aside, "mine"), join(delta, "swap"));
    rmSync(join(aside, "theirs"), { force: true });
    symlinkSync(secret.file, join(aside, "theirs"));
    if (turn % 3 > 0) renameSync(join(aside, "theirs"), join(delta, "swap"));
  };
  const swapDirectory = (turn: number): void => {
    rmSync(join(delta, "dir"), { recursive: true, force: true });
    if (turn % 2 === 0) symlinkSync(secret.below, join(delta, "dir"));
    else plant(delta, { "dir/inner": "mine\n" });
  };
  for (let round = 0; round < rounds(15); round++) {
    let isDone = false;
    const applying = project.apply(id).finally(() => {
      isDone = true;
    });
    for (let turn = round; !isDone; turn++) {
      swapFile(turn);
      swapDirectory(turn);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await applying;
    const everything = JSON.stringify(stateOf(join(project.tree, "..")));
    expect(everything).not.toContain("canary: nobody");
    expect(secret.state.now).toEqual(secret.state.before);
  }
  expect(await project.newest()).toBeGreaterThan(1);
});

test("SYNC-14 a fifo, socket or device is skipped and reported, and blocks nothing", async () => {
  const project = await ground.project({ "a.txt": "a\n", "was-a-file": "f\n" });
  const id = await project.sandbox();
  const socket = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'";
  const inside = await project.run(id, `mkfifo fifo; rm was-a-file; mkfifo was-a-file; ${socket}; echo b >b.txt`);
  expect(inside.sync_problems.map((problem) => problem.split(":")[0]).sort()).toEqual([
    "/workspace/fifo",
    "/workspace/socket",
    "/workspace/was-a-file",
  ]);
  expect(await project.state()).toEqual({ "a.txt": "a\n", "b.txt": "b\n", "was-a-file": "f\n" });
  await project.stop(id);
  const delta = project.delta(id);
  if (IS_ROOT) execFileSync("mknod", [join(delta, "device"), "c", "1", "3"]);
  if (IS_ROOT) execFileSync("mknod", [join(delta, "disk"), "b", "7", "0"]);
  execFileSync("mkfifo", [join(delta, "a.txt")]);
  plant(delta, { "c.txt": "c\n" });
  const { outcomes } = await project.apply(id);
  expect(outcomes.filter(({ applied }) => applied).map(({ change }) => change.path)).toEqual(["/c.txt"]);
  expect(await project.state()).toEqual({ "a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n", "was-a-file": "f\n" });
  expect((await project.refusals(id)).filter((line) => line.includes("never carried over")).length).toBe(
    IS_ROOT ? 6 : 4,
  );
});

test("SYNC-15 set-id bits, owner and capabilities do not reach the codebase", async () => {
  const project = await ground.project({ "tool.sh": "#!/bin/sh\n", "d/x": "x\n" });
  const id = await project.sandbox({}, MANUAL);
  await project.run(id, "echo '#' >>tool.sh; chmod 6755 tool.sh; mkdir s; chmod 3777 s; cp /bin/true t; chmod 4755 t");
  await project.stop(id);
  const delta = project.delta(id);
  plant(delta, { planted: "#!/bin/sh\n", "dir/x": "x\n" });
  for (const name of ["planted", "dir", "t"]) {
    if (IS_ROOT) execFileSync("chown", ["12345:12345", join(delta, name)]);
    chmodSync(join(delta, name), 0o6755);
  }
  const capability =
    "import os,sys; os.setxattr(sys.argv[1], 'security.capability', bytes.fromhex('0100000200040000000000000000000000000000'))";
  if (IS_ROOT) execFileSync("python3", ["-c", capability, join(delta, "planted")]);
  await project.apply(id);
  const facts = execFileSync("stat", ["-c", "%n %a %u:%g", "tool.sh", "s", "t", "planted", "dir"], {
    cwd: project.tree,
    encoding: "utf8",
  });
  const owner = `${process.getuid?.()}:${process.getgid?.()}`;
  const modes = { "tool.sh": 755, s: 777, t: 755, planted: 755, dir: 755 };
  expect(facts).toBe(
    Object.entries(modes)
      .map(([name, mode]) => `${name} ${mode} ${owner}\n`)
      .join(""),
  );
  const attributes = "import os,sys; print(os.listxattr(sys.argv[1]))";
  expect(execFileSync("python3", ["-c", attributes, join(project.tree, "planted")], { encoding: "utf8" })).toBe("[]\n");
});

test("SYNC-10 a codebase file with a second name, at a protected path or outside, is replaced, not written through", async () => {
  const secret = canary();
  const project = await ground.project({ "a.txt": "same\n", "ro.txt": "same\n", "out.txt": secret.secret });
  // One file with two names, as somebody with access to the disk can make it.
  unlinkSync(join(project.tree, "a.txt"));
  linkSync(join(project.tree, "ro.txt"), join(project.tree, "a.txt"));
  unlinkSync(join(project.tree, "out.txt"));
  linkSync(secret.file, join(project.tree, "out.txt"));
  const id = await project.sandbox({ "/ro.txt": "read" });
  await project.run(
    id,
    "echo more >>a.txt; echo new >out.txt; ln a.txt hard.txt; echo third >>hard.txt; ln ro.txt no.txt",
  );
  const grown = "same\nmore\nthird\n";
  expect(await project.state()).toEqual({ "a.txt": grown, "hard.txt": grown, "out.txt": "new\n", "ro.txt": "same\n" });
  // Names that were one file in the sandbox are two in the codebase.
  await project.run(id, "echo fourth >>hard.txt");
  await project.write({ "a.txt": "uploaded\n" });
  expect((await project.state())["ro.txt"]).toBe("same\n");
  expect(secret.state.now).toEqual(secret.state.before);
});

test("SYNC-21 a codebase whose files were moved away or replaced by a link takes no sync, and nothing lands there", async () => {
  const secret = canary();
  const moved = join(ground.server.directory, "moved-away");
  const tampering: ((tree: string) => void)[] = [
    (tree) => renameSync(tree, moved),
    (tree) => {
      renameSync(tree, moved);
      symlinkSync(secret.directory, tree);
    },
    (tree) => {
      renameSync(join(tree, ".."), moved);
      symlinkSync(secret.directory, join(tree, ".."));
    },
    (tree) => {
      renameSync(join(tree, "../staging"), moved);
      symlinkSync(secret.below, join(tree, "../staging"));
    },
  ];
  for (const tamper of tampering) {
    const project = await ground.project({ "d/inner": "mine\n" });
    const id = await project.sandbox();
    tamper(project.tree);
    const answer = await project.run(id, "echo x >d/new; echo y >>d/inner; echo z >file; rm -rf d");
    expect(answer).toMatchObject({
      synced_version: "0",
      sync_problems: [expect.stringMatching(/^nothing was written to the codebase: /)],
    });
    expect((await project.events("sync_failed", id)).length).toBe(1);
    const upload = project.grpc.upload(project.id, "d/up", "u\n");
    expect((await failureOf(upload)).message).not.toContain(ground.server.directory);
    await project.stop(id);
    await project.destroy(id);
    expect(secret.state.now).toEqual(secret.state.before);
    rmSync(moved, { recursive: true });
  }
});

test("SYNC-21 a directory of the codebase that was replaced by a link is not followed", async () => {
  const secret = canary();
  const project = await ground.project({ "d/inner": "mine\n", "e/x": "x\n" });
  const id = await project.sandbox();
  renameSync(join(project.tree, "d"), join(ground.server.directory, "moved-directory"));
  symlinkSync(secret.below, join(project.tree, "d"));
  await project.run(id, "echo x >d/new; echo y >>d/inner; rm -rf d; mkdir -p d; echo z >d/inner; echo e >e/y");
  expect((await failureOf(project.grpc.upload(project.id, "d/up", "u\n"))).code).toBe(13);
  await project.stop(id);
  expect(secret.state.now).toEqual(secret.state.before);
});

test("SYNC-21 a codebase in use is not deleted under its sandboxes, and by force takes them along", async () => {
  const project = await ground.project({ "a.txt": "a\n" });
  const id = await project.sandbox({}, MANUAL);
  await project.run(id, "echo b >b.txt");
  const codebase = { codebase_id: project.id };
  expect((await project.grpc.failure("CodebaseService", "DeleteCodebase", codebase)).code).toBe(9);
  await project.grpc.call("CodebaseService", "DeleteCodebase", { ...codebase, force: true });
  expect((await project.grpc.failure("SandboxService", "ApplyChanges", { sandbox_id: id })).code).toBe(5);
  expect((await project.grpc.failure("SandboxService", "GetSandbox", { sandbox_id: id })).code).toBe(5);
});
