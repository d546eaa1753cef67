import { mkdirSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { withoutHanging } from "../../support/eventually.ts";
import { serveProjects } from "../../support/project.ts";
import { Canary } from "./canary.ts";

// What a thing is changes between codebase and delta, or from one sync to the next.

const UNLIMITED = { disk_bytes: 0, disk_files: 0 };
const ground = serveProjects(() => ({
  settings: {
    sandbox: { max_per_user: 1000, resources: UNLIMITED },
    storage: { max_file_size: 0, max_bytes_per_owner: 0 },
  },
}));

function canary(): Canary {
  const made = new Canary();
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

test("SYNC-03 a deleted directory loses what is writable, and stays while it holds something", async () => {
  const project = await ground.project({
    "d/mine": "1\n",
    "d/secret/key": "k\n",
    "d/sub/mine": "2\n",
    "d/sub/ro": "3\n",
    "gone/x": "4\n",
  });
  const id = await project.sandbox({ "/d/secret/**": "none", "/d/sub/ro": "read" });
  const answer = await project.run(id, "rm -rf d gone; ls");
  const kept = { d: "/", "d/secret": "/", "d/secret/key": "k\n", "d/sub": "/", "d/sub/ro": "3\n" };
  expect(await project.state()).toEqual(kept);
  expect(answer.sync_problems.join()).not.toMatch(/secret/);
  // Once more, and with something else of the same name.
  await project.run(id, "rm -rf d; mkdir -p d; echo new >d/new");
  expect(await project.state()).toEqual({ ...kept, "d/new": "new\n" });
});

test("SYNC-03 nor does a whole directory go whose protected entries came later, or whose rules did", async () => {
  const project = await ground.project({ "d/x": "x\n", "e/x": "x\n" });
  const id = await project.sandbox({}, { sync: "SYNC_MODE_MANUAL" });
  await project.run(id, "rm -r d e");
  await project.write({ "d/late": "late\n" });
  await project.setLevels(id, { "/e/**": "none" });
  await project.apply(id);
  expect(await project.state()).toEqual({ d: "/", "d/late": "late\n", e: "/", "e/x": "x\n" });
  expect((await project.run(id, "cat d/late")).stdout).toBe("late\n");
});

test("SYNC-06 links are synced as links, whatever they lead to", async () => {
  const outside = canary();
  const project = await ground.project({ "a.txt": "a\n", "d/x": "x\n", "ro.txt": "ro\n" });
  const id = await project.sandbox({ "/ro.txt": "read" });
  const targets = {
    directory: outside.directory,
    file: outside.file,
    loop: "loop",
    long: `./${"x/".repeat(500)}y`,
    shadow: "/etc/shadow",
    up: "../../../../../..",
    ro: "ro.txt",
  };
  const commands = Object.entries(targets).map(([name, target]) => `ln -s '${target}' ${name}`);
  await project.run(id, `${commands.join("; ")}; echo x >ro; echo x >up/root; echo x >file; echo x >directory/new`);
  const links = Object.fromEntries(Object.entries(targets).map(([name, target]) => [name, `-> ${target}`]));
  expect(await project.state()).toEqual({ "a.txt": "a\n", d: "/", "d/x": "x\n", "ro.txt": "ro\n", ...links });
  expect(outside.state.now).toEqual(outside.state.before);
  // Nobody follows them out of the codebase later either.
  const download = project.grpc.download(project.id, "file").then(String, String);
  expect(await download).not.toContain(outside.secret);
  const below = project.grpc.download(project.id, "directory/file").then(String, String);
  expect(await below).not.toContain(outside.secret);
});

test("SYNC-07 a link to a directory that becomes a directory is replaced, and nothing lands in its target", async () => {
  const outside = canary();
  const project = await ground.project({ "a.txt": "a\n" });
  const [one, two] = [await project.sandbox(), await project.sandbox()];
  await project.run(one, `ln -s ${outside.below} own; ln -s ${outside.below} others; ln -s . here`);
  await project.run(one, "rm own; mkdir own; echo x >own/inner; echo y >own/new");
  await project.run(
    two,
    "rm others; mkdir others; echo x >others/inner; rm here; mkdir -p here/here; echo z >here/here/z",
  );
  expect(await project.state()).toEqual({
    "a.txt": "a\n",
    here: "/",
    "here/here": "/",
    "here/here/z": "z\n",
    others: "/",
    "others/inner": "x\n",
    own: "/",
    "own/inner": "x\n",
    "own/new": "y\n",
  });
  // A delta that already has the directory when the codebase gets the link.
  const late = await project.sandbox({}, { sync: "SYNC_MODE_MANUAL" });
  await project.run(late, "mkdir late; echo x >late/inner");
  await project.run(one, `ln -s ${outside.below} late`);
  await project.apply(late);
  expect(await project.state()).toMatchObject({ late: "/", "late/inner": "x\n" });
  expect(outside.state.now).toEqual(outside.state.before);
});

test("SYNC-08 a link to a file that becomes a file is replaced, and nothing lands in its target", async () => {
  const outside = canary();
  const project = await ground.project({ "a.txt": "a\n", "ro.txt": "ro\n" });
  const [one, two] = [await project.sandbox({ "/ro.txt": "read" }), await project.sandbox({ "/ro.txt": "read" })];
  await project.run(one, `ln -s ${outside.file} own; ln -s ${outside.file} others; ln -s ro.txt inside`);
  await project.run(one, "rm own; echo mine >own; rm inside; echo mine >inside");
  await project.run(two, "echo mine >new; mv new others");
  const files = { "a.txt": "a\n", inside: "mine\n", others: "mine\n", own: "mine\n", "ro.txt": "ro\n" };
  expect(await project.state()).toEqual(files);
  await project.grpc.upload(project.id, "own", "", { symlink_target: outside.file });
  await project.grpc.upload(project.id, "own", "uploaded\n");
  expect(await project.state()).toEqual({ ...files, own: "uploaded\n" });
  expect(outside.state.now).toEqual(outside.state.before);
});

test("SYNC-09 a change of type is applied as a whole or reported, hidden entries survive, and the rest goes on", async () => {
  const project = await ground.project({
    "dir-to-file/a": "a\n",
    "dir-to-file/b/c": "c\n",
    "dir-to-link/a": "a\n",
    "file-to-dir": "f\n",
    "file-to-link": "f\n",
    "keeps/hidden": "h\n",
    "keeps/mine": "m\n",
    "keeps2/hidden": "h\n",
  });
  const id = await project.sandbox({ "/keeps/hidden": "none", "/keeps2/**": "none" });
  const answer = await project.run(
    id,
    `rm -r dir-to-file; echo file >dir-to-file
     rm -r dir-to-link; ln -s nowhere dir-to-link
     rm file-to-dir; mkdir -p file-to-dir/x; echo y >file-to-dir/x/y
     rm file-to-link; ln -s nowhere file-to-link
     rm -r keeps; echo file >keeps
     echo new >unrelated`,
  );
  const now = {
    "dir-to-file": "file\n",
    "dir-to-link": "-> nowhere",
    "file-to-dir": "/",
    "file-to-dir/x": "/",
    "file-to-dir/x/y": "y\n",
    "file-to-link": "-> nowhere",
    keeps: "/",
    "keeps/hidden": "h\n",
    keeps2: "/",
    "keeps2/hidden": "h\n",
    unrelated: "new\n",
  };
  // All or nothing: what the directory holds besides is not taken away for a file that cannot come.
  expect(await project.state()).toEqual({ ...now, "keeps/mine": "m\n" });
  expect(answer.sync_problems).toEqual(["/workspace/keeps: the codebase keeps what is there"]);
  expect((await project.run(id, "cat keeps")).stdout).toBe("file\n");
});

test("SYNC-16 a sparse giant costs what it holds, and more than fits is reported", async () => {
  const project = await ground.project({ "a.txt": "a\n" });
  const id = await project.sandbox();
  const limited = await project.sandbox({}, { resources: { disk_bytes: 1_000_000_000 } });
  const GIB = 2 ** 30;
  const { exit_code, stderr } = await project.run(limited, "truncate -s 2G giant");
  expect({ exit_code, stderr }).toMatchObject({ exit_code: 1, stderr: expect.stringMatching(/quota|large/i) });
  const far = await withoutHanging(() =>
    project.run(id, "truncate -s 1T terabyte; echo end >>terabyte; echo b >b.txt"),
  );
  if (far.stderr === "") expect(far.sync_problems).toEqual([expect.stringMatching(/^\/workspace\/terabyte: /)]);
  await project.run(
    id,
    "rm -f terabyte; truncate -s 1G sparse; printf middle | dd of=sparse bs=1M seek=512 conv=notrunc",
  );
  const sparse = statSync(join(project.tree, "sparse"));
  expect(sparse.size).toBe(GIB);
  expect(sparse.blocks * 512).toBeLessThan(4_000_000);
  expect((await project.run(id, "dd if=sparse bs=1M skip=512 count=1 status=none | head -c 6")).stdout).toBe("middle");
  expect(statSync(join(project.tree, "b.txt")).size).toBe(2);
});

test("SYNC-16 what a version replaced stays sparse too", async () => {
  const project = await ground.project();
  const id = await project.sandbox();
  await project.run(id, "truncate -s 100M sparse");
  await project.run(id, "echo x >>sparse; mv sparse moved");
  const kept = join(project.tree, "../kept/2/0");
  expect(statSync(kept).size).toBe(100 * 2 ** 20);
  expect(statSync(kept).blocks * 512).toBeLessThan(1_000_000);
  expect(statSync(join(project.tree, "moved")).blocks * 512).toBeLessThan(1_000_000);
});

test("SYNC-07 a delta directory that was replaced by a link behind the server's back is no way out", async () => {
  const outside = canary();
  const project = await ground.project({ "d/x": "x\n" });
  const id = await project.sandbox({}, { sync: "SYNC_MODE_MANUAL" });
  await project.stop(id);
  const delta = project.delta(id);
  mkdirSync(join(delta, "e"));
  symlinkSync(outside.below, join(delta, "e/inner"));
  symlinkSync(outside.below, join(delta, "d"));
  await project.apply(id);
  expect(await project.state()).toEqual({ d: `-> ${outside.below}`, e: "/", "e/inner": `-> ${outside.below}` });
  expect(outside.state.now).toEqual(outside.state.before);
});
