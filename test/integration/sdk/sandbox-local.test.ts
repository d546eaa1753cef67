import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Sandbox } from "@agentfense/sdk";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { TestServer } from "../../support/server.ts";

let server: TestServer;
let scratch: string;
let top: string;
beforeAll(async () => {
  server = await TestServer.start();
  scratch = mkdtempSync(join(tmpdir(), "agentfense-apply-"));
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});

beforeEach(() => {
  top = mkdtempSync(join(scratch, "project-"));
});

async function open(files: Readonly<Record<string, string>>): Promise<Sandbox> {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(top, path)), { recursive: true });
    writeFileSync(join(top, path), content);
  }
  return await Sandbox.fromLocal(top, { endpoint: server.grpc, preset: "full-access" });
}

function onDisk(): Record<string, string> {
  const files = readdirSync(top, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  const pairs = files.map(({ parentPath, name }): [string, string] => {
    const place = join(parentPath, name);
    return [place.slice(top.length + 1), readFileSync(place, "utf8")];
  });
  return Object.fromEntries(pairs.sort(([a], [b]) => (a < b ? -1 : 1)));
}

const refused = (outcomes: Awaited<ReturnType<Sandbox["apply"]>>["outcomes"]) =>
  outcomes.filter(({ applied }) => !applied).map(({ change, conflict }) => [change.path, conflict]);

test("apply brings everything of a kind into the local directory", async () => {
  await using sandbox = await open({
    "a.txt": "one\n",
    "gone/b.txt": "b\n",
    "old.txt": "a text to be found again\n",
    x: "x",
  });
  await sandbox.run(
    "echo two >> a.txt; rm -r gone; mv old.txt moved.txt; mkdir -p new/deep; echo n > new/deep/n.txt; chmod +x moved.txt; rm x; mkdir x; echo in > x/in",
    { check: true },
  );
  const before = onDisk();
  const planned = await sandbox.apply({ dryRun: true });
  expect(refused(planned.outcomes)).toEqual([]);
  expect(onDisk()).toEqual(before);
  const { version, outcomes } = await sandbox.apply();
  expect(version).toBeGreaterThan(0);
  expect(refused(outcomes)).toEqual([]);
  expect(onDisk()).toEqual({
    "a.txt": "one\ntwo\n",
    "moved.txt": "a text to be found again\n",
    "new/deep/n.txt": "n\n",
    "x/in": "in\n",
  });
  expect(readdirSync(top).sort()).toEqual(["a.txt", "moved.txt", "new", "x"]);
  expect(statSync(join(top, "moved.txt")).mode & 0o111).toBe(0o111);
  expect(await sandbox.changes().toArray()).toEqual([]);

  await sandbox.run("echo three >> a.txt; rm new/deep/n.txt; rmdir new/deep");
  expect(refused((await sandbox.apply()).outcomes)).toEqual([]);
  expect(onDisk()).toEqual({
    "a.txt": "one\ntwo\nthree\n",
    "moved.txt": "a text to be found again\n",
    "x/in": "in\n",
  });
});

test("apply of some paths only, and nothing to apply", async () => {
  await using sandbox = await open({ "a.txt": "one\n" });
  expect(await sandbox.apply()).toEqual({ version: 0, outcomes: [] });
  await sandbox.run("echo two > a.txt; mkdir -p d/e; echo f > d/e/f; echo g > d/e/g");
  await sandbox.apply({ paths: ["d/e/f"] });
  expect(onDisk()).toEqual({ "a.txt": "one\n", "d/e/f": "f\n" });
});

test("what changed here since the upload is left alone and told, the rest comes", async () => {
  await using sandbox = await open({ "a.txt": "one\n", "b.txt": "one\n" });
  await sandbox.run("echo two > a.txt; echo two > b.txt; echo theirs > c.txt");
  writeFileSync(join(top, "a.txt"), "mine\n");
  writeFileSync(join(top, "c.txt"), "mine\n");
  const conflicts = [
    ["/a.txt", true],
    ["/c.txt", true],
  ];
  expect(refused((await sandbox.apply({ dryRun: true })).outcomes)).toEqual(conflicts);
  expect(refused((await sandbox.apply()).outcomes)).toEqual(conflicts);
  expect(onDisk()).toEqual({ "a.txt": "mine\n", "b.txt": "two\n", "c.txt": "mine\n" });
  expect(Buffer.from(await sandbox.client.downloadFile(sandbox.codebaseId, "a.txt")).toString()).toBe("two\n");
});

test("sync writes to the codebase only", async () => {
  await using sandbox = await open({ "a.txt": "one\n" });
  await sandbox.run("echo two > a.txt");
  expect((await sandbox.sync()).outcomes).toMatchObject([{ applied: true }]);
  expect(onDisk()).toEqual({ "a.txt": "one\n" });
  expect(Buffer.from(await sandbox.client.downloadFile(sandbox.codebaseId, "a.txt")).toString()).toBe("two\n");
});

test("many changed directories at once", async () => {
  const files = Object.fromEntries(Array.from({ length: 80 }, (_, index) => [`d${index}/f.txt`, `${index}\n`]));
  await using sandbox = await open(files);
  await sandbox.run("for f in d*/f.txt; do echo more >> $f; done");
  expect(refused((await sandbox.apply()).outcomes)).toEqual([]);
  expect(Object.values(onDisk()).every((content) => content.endsWith("\nmore\n"))).toBe(true);
});
