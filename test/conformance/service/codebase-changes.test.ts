import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync, watch } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Project, serveProjects } from "../../support/project.ts";

// How a codebase changes under those who look at it.

const ground = serveProjects();
const MANUAL = { sync: "SYNC_MODE_MANUAL" };

/** All that an open file holds. */
function contentOf(fd: number): string {
  const bytes = Buffer.alloc(fstatSync(fd).size);
  readSync(fd, bytes, 0, bytes.length, 0);
  return bytes.toString();
}

test("L-19 files change only by another file taking the name, so that a reader keeps what it opened", async () => {
  const old = {
    "deleted.txt": "old\n",
    "renamed.txt": "old\n",
    "rolled.txt": "old\n",
    "synced.txt": "old\n",
    "uploaded.txt": "old\n",
  };
  const project = await ground.project(old);
  const id = await project.sandbox();
  const readers = Object.keys(old).map((name) => openSync(join(project.tree, name), "r"));
  const inodes = (): number[] => Object.keys(old).map((name) => statSync(join(project.tree, name)).ino);
  const before = inodes();
  const inside = await project.session(id);
  await inside("exec 3<uploaded.txt 4<synced.txt 5<deleted.txt");
  await project.grpc.upload(project.id, "uploaded.txt", "new\n");
  await project.run(id, "echo new >synced.txt");
  await project.write({ "rolled.txt": "new\n" });
  expect(inodes().map((inode, index) => inode === before[index])).toEqual([true, true, false, false, false]);
  const file = { codebase_id: project.id, file_path: "deleted.txt" };
  await project.grpc.call("CodebaseService", "DeleteFile", file);
  const rename = { codebase_id: project.id, from_path: "renamed.txt", to_path: "moved.txt" };
  await project.grpc.call("CodebaseService", "RenameFile", rename);
  await project.grpc.call("CodebaseService", "Rollback", { codebase_id: project.id, version: 3 });
  expect(readers.map(contentOf)).toEqual(readers.map(() => "old\n"));
  for (const fd of readers) closeSync(fd);
  // A process inside that has a file open goes on with what is there, whole.
  expect(["old\n", "new\n"]).toContain((await inside("cat <&3")).stdout);
  expect(["old\n", "new\n"]).toContain((await inside("cat <&4")).stdout);
  expect(readdirSync(join(project.tree, "../staging"))).toEqual([]);
});

test("L-19 no name ever has part of a content, and no temporary name appears among the files", async () => {
  const size = 400_000;
  const project = await ground.project({ "big.txt": "0".repeat(size) });
  const id = await project.sandbox();
  const seen = new Set<string | null>();
  const watcher = watch(project.tree, (_event, name) => seen.add(name));
  let isDone = false;
  const looking = (async () => {
    while (!isDone) {
      const fd = openSync(join(project.tree, "big.txt"), "r");
      const content = contentOf(fd);
      closeSync(fd);
      expect(content).toBe((content[0] ?? "").repeat(size));
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  for (let digit = 1; digit < 6; digit++) {
    await project.run(id, `head -c ${size} /dev/zero | tr '\\0' ${digit} >big.txt`);
    await project.grpc.upload(project.id, "big.txt", String(digit + 1).repeat(size));
  }
  isDone = true;
  await looking;
  watcher.close();
  expect([...seen]).toEqual(["big.txt"]);
});

test("L-20 every live mount is told which paths changed, whatever changed them, before the call returns", async () => {
  const project = await ground.project({ "a.txt": "1\n", "d/x": "1\n", "gone.txt": "1\n" });
  const readers = await Promise.all([project.sandbox(), project.sandbox(), project.sandbox({ "/a.txt": "none" })]);
  const look = "ls; cat a.txt d/x gone.txt new.txt d/new moved.txt 2>/dev/null";
  // All of it is in the kernel's caches first, what is missing included.
  for (const id of readers) await project.run(id, `${look}; ${look}`);
  const steps: readonly [change: (writer: string) => Promise<unknown>, shown: string][] = [
    [() => project.grpc.upload(project.id, "a.txt", "2\n"), "a.txt\nd\ngone.txt\n2\n1\n1\n"],
    [() => project.write({ "d/new": "new\n", "d/x": "2\n" }), "a.txt\nd\ngone.txt\n2\n2\n1\nnew\n"],
    [
      (writer) => project.run(writer, "echo 3 >a.txt; rm gone.txt; echo n >new.txt"),
      "a.txt\nd\nnew.txt\n3\n2\nn\nnew\n",
    ],
    [
      () => call(project, "RenameFile", { from_path: "new.txt", to_path: "moved.txt" }),
      "a.txt\nd\nmoved.txt\n3\n2\nnew\nn\n",
    ],
    [() => call(project, "DeleteFile", { file_path: "d", recursive: true }), "a.txt\nmoved.txt\n3\nn\n"],
    [() => call(project, "Rollback", { version: 1 }), "a.txt\nd\ngone.txt\n1\n1\n1\n"],
  ];
  const writer = await project.sandbox();
  for (const [change, shown] of steps) {
    await change(writer);
    const [first, second, third] = await Promise.all(readers.map(async (id) => (await project.run(id, look)).stdout));
    expect(first).toBe(shown);
    expect(second).toBe(shown);
    // Whoever may not see a path hears nothing of it.
    expect(third).toBe(shown.replace("a.txt\n", "").replace(/^\d\n/m, ""));
  }
});

test("L-21 an upload is visible at once in running sandboxes, unless their own changes are in front of it", async () => {
  const project = await ground.project({ "a.txt": "1\n", "b.txt": "1\n", "c.txt": "1\n" });
  const [clean, dirty] = [await project.sandbox({}, MANUAL), await project.sandbox({}, MANUAL)];
  await project.run(dirty, "echo mine >a.txt; rm b.txt; mkdir d; echo mine >d/x");
  await project.write({ "a.txt": "2\n", "b.txt": "2\n", "c.txt": "2\n", "d/x": "2\n", "d/y": "2\n" });
  const look = "for f in a.txt b.txt c.txt d/x d/y; do echo $f $(cat $f 2>/dev/null); done";
  expect((await project.run(clean, look)).stdout).toBe("a.txt 2\nb.txt 2\nc.txt 2\nd/x 2\nd/y 2\n");
  expect((await project.run(dirty, look)).stdout).toBe("a.txt mine\nb.txt\nc.txt 2\nd/x mine\nd/y 2\n");
  // By the API's view of it as well.
  const read = async (id: string, path: string): Promise<string> =>
    (await project.grpc.collect("SandboxService", "ReadFile", { sandbox_id: id, path }))
      .map(({ data }) => String(data))
      .join("");
  expect([await read(clean, "a.txt"), await read(dirty, "a.txt"), await read(dirty, "c.txt")]).toEqual([
    "2\n",
    "mine\n",
    "2\n",
  ]);
  // Without its changes it sees the rest.
  await project.grpc.call("SandboxService", "DiscardChanges", { sandbox_id: dirty });
  expect((await project.run(dirty, look)).stdout).toBe("a.txt 2\nb.txt 2\nc.txt 2\nd/x 2\nd/y 2\n");
});

test("L-22 every change makes a version, which can be listed, read, rolled back to and pinned", async () => {
  const project = await ground.project({ "a.txt": "1\n", "d/x": "x\n" });
  const id = await project.sandbox();
  await project.run(id, "echo 2 >a.txt; rm -r d; ln -s a.txt link");
  await project.grpc.upload(project.id, "b.txt", "b\n");
  await call(project, "RenameFile", { from_path: "b.txt", to_path: "c.txt" });
  await call(project, "DeleteFile", { file_path: "a.txt" });
  const { versions } = await call(project, "ListVersions", {});
  const told = (versions as { version: string; origin: string; sandbox_id: string }[]).map(
    ({ version, origin, sandbox_id }) => `${version} ${origin.replace("VERSION_ORIGIN_", "")} ${sandbox_id === id}`,
  );
  expect(told).toEqual(["5 DELETE false", "4 RENAME false", "3 UPLOAD false", "2 SYNC true", "1 UPLOAD false"]);
  const changes = (await project.version(2)).changes.map(
    ({ kind, path }) => `${kind.replace("CHANGE_KIND_", "")} ${path}`,
  );
  expect(changes.sort()).toEqual(["ADDED link", "DELETED d", "DELETED d/x", "MODIFIED a.txt"]);

  const at = async (version: number): Promise<Record<string, string>> => {
    const { files } = await call(project, "ListFiles", { version, recursive: true });
    const read = (files as { path: string; is_dir: boolean; symlink_target: string }[]).map(async (file) => {
      if (file.is_dir) return [file.path, "/"];
      if (file.symlink_target !== "") return [file.path, `-> ${file.symlink_target}`];
      return [file.path, String(await project.grpc.download(project.id, file.path, { version }))];
    });
    return Object.fromEntries(await Promise.all(read)) as Record<string, string>;
  };
  const history: Record<number, Record<string, string>> = {
    1: { "a.txt": "1\n", d: "/", "d/x": "x\n" },
    2: { "a.txt": "2\n", link: "-> a.txt" },
    3: { "a.txt": "2\n", "b.txt": "b\n", link: "-> a.txt" },
    4: { "a.txt": "2\n", "c.txt": "b\n", link: "-> a.txt" },
    5: { "c.txt": "b\n", link: "-> a.txt" },
  };
  for (const [version, state] of Object.entries(history)) expect(await at(Number(version))).toEqual(state);

  const pinned = await project.sandbox({}, { codebase_version: 1 });
  expect((await project.run(pinned, "cat a.txt d/x; ls")).stdout).toBe("1\nx\na.txt\nd\n");
  const back = await call(project, "Rollback", { version: 2 });
  expect(back).toMatchObject({ version: "6", origin: "VERSION_ORIGIN_ROLLBACK" });
  expect(await project.state()).toEqual(history[2]);
  expect((await project.run(id, "cat a.txt link; ls")).stdout).toBe("2\n2\na.txt\nlink\n");
  // What is pinned stays what it was, can be changed within, and changes nothing.
  await project.run(pinned, "echo mine >a.txt; rm -r d");
  expect((await project.run(pinned, "cat a.txt; ls")).stdout).toBe("mine\na.txt\n");
  await project.stop(pinned);
  expect(await project.state()).toEqual(history[2]);
  for (const [version, state] of Object.entries(history)) expect(await at(Number(version))).toEqual(state);
});

function call(project: Project, method: string, request: Record<string, unknown>): Promise<Record<string, unknown>> {
  return project.grpc.call("CodebaseService", method, { codebase_id: project.id, ...request });
}
