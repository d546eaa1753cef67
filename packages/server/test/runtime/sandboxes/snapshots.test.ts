import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import type { CreateSandboxRequest } from "../../../src/runtime/sandboxes/api.ts";
import { ALICE, BOB, refusal, SandboxesFixture, sandboxRequest } from "./fixture.ts";

const APART = { sync: "manual" } as const;
const EVERYTHING = { pageSize: 0, pageToken: "" };

/** What a fork asks for: nothing but this. */
function ownSettings(changes: Partial<CreateSandboxRequest> = {}): CreateSandboxRequest {
  return { ...sandboxRequest({ codebaseId: "", rules: [], preset: "" }), runtime: undefined, ...changes };
}

async function changedPaths(place: SandboxesFixture, id: string): Promise<readonly string[]> {
  const { items } = await place.sandboxes.changes(ALICE, id, EVERYTHING);
  return items.map(({ kind, path }) => `${kind} ${path}`);
}

async function refused(work: Promise<unknown>, code: string): Promise<void> {
  expect(await refusal(work)).toMatchObject({ code });
}

async function layersOf(place: SandboxesFixture): Promise<readonly string[]> {
  return await readdir(join(place.deltaDirectory, "layers")).catch(() => []);
}

describe("a snapshot", () => {
  test("is gone back to, with the home, while the sandbox runs and when it is stopped, also after a crash of the server", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    await place.upload({ "kept.txt": "codebase\n", "gone.txt": "codebase\n" });
    const id = await place.running(APART);
    await place.run(id, "echo one > a; rm gone.txt; echo one > ~/h");
    const first = await place.sandboxes.snapshot(ALICE, id, { label: "first" });
    await place.run(id, "echo two > a; echo two > b; echo two > gone.txt; rm ~/h");
    const second = await place.sandboxes.snapshot(ALICE, id, { label: "second" });
    await place.run(id, "rm -rf *; echo three > c");
    const shown = async (): Promise<string> => (await place.run(id, "head -n 1 * 2>&1; ls ~")).stdout;
    expect(await changedPaths(place, id)).toEqual(["added /c", "deleted /gone.txt", "deleted /kept.txt"]);

    const options = (snapshotId: string) => ({ snapshotId, onlyIdle: false });
    await place.sandboxes.restore(ALICE, id, options(first.id));
    const atFirst = "==> a <==\none\n\n==> kept.txt <==\ncodebase\nh\n";
    expect(await shown()).toBe(atFirst);
    expect(await changedPaths(place, id)).toEqual(["added /a", "deleted /gone.txt"]);
    await place.reopen({ crash: true });
    expect(await shown()).toBe(atFirst);
    await place.sandboxes.stop(ALICE, id);
    await place.sandboxes.restore(ALICE, id, options(second.id));
    expect((await place.sandboxes.get(ALICE, id)).status).toBe("STOPPED");
    expect(await changedPaths(place, id)).toEqual(["added /a", "added /b", "modified /gone.txt"]);
    await place.sandboxes.start(ALICE, id);
    expect(await shown()).toBe(
      "==> a <==\ntwo\n\n==> b <==\ntwo\n\n==> gone.txt <==\ntwo\n\n==> kept.txt <==\ncodebase\n",
    );
    const listed = await place.sandboxes.listSnapshots(ALICE, { sandboxId: id, ownerId: "" });
    expect(listed.map(({ label }) => label)).toEqual(["first", "second"]);
    const told = await place.events("snapshot_created", "snapshot_restored");
    expect(told.map(({ type, data }) => [type, data.snapshot])).toEqual([
      ["snapshot_created", first.id],
      ["snapshot_created", second.id],
      ["snapshot_restored", first.id],
      ["snapshot_restored", second.id],
    ]);
  });

  test("BR-04 is not noticed by what runs: a writer, a lock, a working directory, hard links and a mapping go on", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    for (const resources of [{}, { diskBytes: 64 << 20 }]) {
      const id = await place.running({ ...APART, resources });
      const program = `
import fcntl, mmap, os, sys
os.makedirs("d/e"); os.chdir("d/e")
log = open("log", "w"); log.write("before\\n"); log.flush()
os.link("log", "again")
lock = open("../lock", "w"); fcntl.flock(lock, fcntl.LOCK_EX)
with open("mapped", "wb") as f: f.write(b"x" * 8192)
mapped = mmap.mmap(os.open("mapped", os.O_RDWR), 8192)
mapped[0] = ord("1")
gone = open("gone", "w+"); gone.write("kept"); gone.flush(); os.unlink("gone")
print("ready", flush=True)
sys.stdin.readline()
log.write("after\\n"); log.flush(); mapped[4096] = ord("2"); mapped.flush()
gone.write(" on"); gone.seek(0)
other = open("../lock"); held = False
try: fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError: held = True
open("new", "w").close(); os.rename("new", "newer")
print(os.getcwd(), held, gone.read(), open("again").read().split(), os.stat("log").st_ino == os.stat("again").st_ino, os.stat("log").st_nlink)
`;
      const processes = await place.sandboxes.processes(ALICE, id);
      const { number } = await processes.spawn({ command: ["python3", "-c", program], stdin: true });
      const text: string[] = [];
      const attached = (async () => {
        for await (const event of processes.attach(number)) if ("data" in event) text.push(event.data.toString());
      })();
      await eventually(() => expect(text.join("")).toContain("ready"));
      const { id: snapshotId } = await place.sandboxes.snapshot(ALICE, id, { label: "" });
      await processes.write(number, Buffer.from("go\n"));
      await attached;
      expect(text.join("").split("\n").slice(1)).toEqual([
        "/workspace/d/e True kept on ['before', 'after'] True 2",
        "",
      ]);
      const now = await place.run(
        id,
        "cat d/e/log; head -c 1 d/e/mapped; tail -c +4097 d/e/mapped | head -c 1; ls d/e",
      );
      expect(now.stdout).toBe("before\nafter\n12again\nlog\nmapped\nnewer\n");
      await place.sandboxes.restore(ALICE, id, { snapshotId, onlyIdle: true });
      const then = await place.run(id, "cat d/e/log d/e/again; tail -c +4097 d/e/mapped | head -c 1; ls d/e");
      expect(then.stdout).toBe("before\nbefore\nxagain\nlog\nmapped\n");
    }
  });

  test("BR-05 counts in the quota of its sandbox and of those that are made of it, each layer once", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    const id = await place.running({ ...APART, resources: { diskBytes: 4 << 20, diskFiles: 100 } });
    const used = async (sandbox: string): Promise<number[]> => {
      const script = 'import os; s = os.statvfs("."); print((s.f_blocks - s.f_bfree) * 4096, s.f_files - s.f_ffree)';
      return (await place.run(sandbox, `python3 -c '${script}'`)).stdout.split(" ").map(Number);
    };
    await place.run(id, "head -c 1000000 /dev/zero > a; mkdir d; echo x > ~/h");
    const before = await used(id);
    await place.sandboxes.snapshot(ALICE, id, { label: "" });
    expect(await used(id)).toEqual(before);
    await place.sandboxes.snapshot(ALICE, id, { label: "again" });
    expect(await layersOf(place)).toHaveLength(1);
    const [fork] = await place.sandboxes.fork(ALICE, id, { snapshotId: "", count: 1, request: ownSettings() });
    await place.sandboxes.start(ALICE, fork!.id);
    expect(await used(fork!.id)).toEqual(before);
    expect((await place.run(fork!.id, "head -c 3500000 /dev/zero > b")).stderr).toMatch(/quota exceeded/i);
    await place.sandboxes.stop(ALICE, id);
    await place.sandboxes.start(ALICE, id);
    expect(await used(id)).toEqual(before);
  });

  test("BR-05 is refused where it means nothing, and nobody else finds it", async () => {
    await using place = await SandboxesFixture.open({ runtime: "mock", defaults: { maxSnapshotsPerOwner: 2 } });
    const synced = await place.create({ sync: "on-exec" });
    const snapshot = { label: "" };
    await refused(place.sandboxes.snapshot(ALICE, synced.id, snapshot), "SNAPSHOT_REFUSED");
    const { id } = await place.create(APART);
    await refused(place.sandboxes.snapshot(BOB, id, snapshot), "SANDBOX_NOT_FOUND");
    await refused(place.sandboxes.snapshot(ALICE, id, { label: "x".repeat(257) }), "INVALID_ARGUMENT");
    const first = await place.sandboxes.snapshot(ALICE, id, snapshot);
    await place.sandboxes.snapshot(ALICE, id, snapshot);
    await refused(place.sandboxes.snapshot(ALICE, id, snapshot), "LIMIT_EXCEEDED");
    const restore = { snapshotId: first.id, onlyIdle: false };
    const bobs = (await place.sandboxes.create(BOB, place.request({ codebaseId: place.bobsCodebaseId, ...APART }))).id;
    await refused(place.sandboxes.restore(BOB, bobs, restore), "SNAPSHOT_NOT_FOUND");
    await refused(place.sandboxes.createFrom(BOB, first.id, ownSettings()), "SNAPSHOT_NOT_FOUND");
    await refused(place.sandboxes.deleteSnapshot(BOB, first.id), "SNAPSHOT_NOT_FOUND");
    expect(await place.sandboxes.listSnapshots(BOB, { sandboxId: id, ownerId: "alice" })).toEqual([]);
    await refused(place.sandboxes.deleteSnapshot(ALICE, "../x"), "INVALID_ARGUMENT");
    await refused(
      place.sandboxes.fork(ALICE, id, { snapshotId: "", count: 101, request: ownSettings() }),
      "INVALID_ARGUMENT",
    );
    const own = ownSettings({ sync: "on-exec" });
    await refused(
      place.sandboxes.fork(ALICE, id, { snapshotId: first.id, count: 1, request: own }),
      "INVALID_ARGUMENT",
    );
    await refused(
      place.sandboxes.fork(ALICE, id, { snapshotId: "", count: 50, request: ownSettings() }),
      "LIMIT_EXCEEDED",
    );
    // All of them or none.
    const { items } = await place.sandboxes.list(ALICE, { ...EVERYTHING, codebaseId: "", ownerId: "", labels: {} });
    expect(items.map((one) => one.id).sort()).toEqual([synced.id, id].sort());
  });
});

describe("a fork", () => {
  test("goes its own way from where the sandbox was, with its settings, and outlives it", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    await place.upload({ "base.txt": "base\n" });
    const id = await place.running({ ...APART, env: { MODE: "test" } });
    await place.run(id, "echo parent > work; echo secret > ~/login");
    const forks = await place.sandboxes.fork(ALICE, id, { snapshotId: "", count: 2, request: ownSettings() });
    await place.run(id, "echo changed > work");
    const [one, two] = forks.map((fork) => fork.id);
    for (const fork of [one!, two!]) await place.sandboxes.start(ALICE, fork);
    expect((await place.run(one!, "cat work ~/login base.txt; echo $MODE")).stdout).toBe(
      "parent\nsecret\nbase\ntest\n",
    );
    await place.run(one!, "echo one > work; rm base.txt");
    expect((await place.run(two!, "cat work base.txt")).stdout).toBe("parent\nbase\n");
    expect((await place.run(id, "cat work base.txt")).stdout).toBe("changed\nbase\n");
    await place.sandboxes.destroy(ALICE, id);
    await place.sandboxes.destroy(ALICE, one!);
    await place.reopen({ crash: true });
    expect((await place.run(two!, "cat work; echo more > more")).stdout).toBe("parent\n");
    const applied = await place.sandboxes.apply(ALICE, two!, { paths: [], dryRun: false });
    expect(applied.outcomes.map(({ change, applied: isIn }) => [change.path, isIn])).toEqual([
      ["/more", true],
      ["/work", true],
    ]);
    expect(await changedPaths(place, two!)).toEqual([]);
    expect(await place.tree()).toEqual({ "base.txt": "base\n", more: "more\n", work: "parent\n" });
    await place.sandboxes.destroy(ALICE, two!);
    await eventually(async () => expect(await layersOf(place)).toEqual([]));
  });

  test("BR-01 with narrower rules sees nothing more than these, by content, listing, change or diff", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    await place.upload({ "src/a.txt": "a\n", "secret/key": "key\n" });
    const id = await place.running(APART);
    await place.run(id, "echo mine > secret/mine; echo b > src/b.txt; ln secret/mine src/linked; rm secret/key");
    const rules = [
      { pattern: "**", permission: "write" },
      { pattern: "/secret/**", permission: "none", priority: 1 },
    ] as const;
    const request = ownSettings({ rules });
    const [fork] = await place.sandboxes.fork(ALICE, id, { snapshotId: "", count: 1, request });
    await place.sandboxes.start(ALICE, fork!.id);
    const found = await place.run(fork!.id, "ls -A; cat secret/mine; stat -c %h src/linked; mkdir secret; ls src");
    expect(found.stdout).toBe("src\n1\na.txt\nb.txt\nlinked\n");
    expect(await changedPaths(place, fork!.id)).toEqual(["added /src/b.txt", "added /src/linked"]);
    const diffs = await Array.fromAsync(place.sandboxes.diff(ALICE, fork!.id, { paths: [], patch: false }));
    expect(diffs.map(({ change }) => change.path)).toEqual(["/src/b.txt", "/src/linked"]);
  });

  test("BR-05 of a snapshot begins there, layers that nobody needs are removed, and what others changed since is kept", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    await place.upload({ "a.txt": "old\n" });
    const id = await place.running(APART);
    await place.run(id, "echo mine > a.txt; echo mine > b.txt");
    const snapshot = await place.sandboxes.snapshot(ALICE, id, { label: "" });
    const made = await place.sandboxes.createFrom(ALICE, snapshot.id, ownSettings({ labels: { of: "a snapshot" } }));
    await place.sandboxes.start(ALICE, made.id);
    await place.upload({ "a.txt": "newer\n" });
    expect((await place.run(made.id, "cat a.txt b.txt")).stdout).toBe("mine\nmine\n");
    const { outcomes } = await place.sandboxes.apply(ALICE, made.id, { paths: [], dryRun: false });
    expect(outcomes.map(({ change, applied }) => [change.path, applied])).toEqual([
      ["/a.txt", false],
      ["/b.txt", true],
    ]);
    expect(await place.tree()).toEqual({ "a.txt": "newer\n", "b.txt": "mine\n" });
    await refused(place.sandboxes.discard(ALICE, made.id, []), "SNAPSHOT_REFUSED");
    await place.sandboxes.deleteSnapshot(ALICE, snapshot.id);
    await refused(place.sandboxes.createFrom(ALICE, snapshot.id, ownSettings()), "SNAPSHOT_NOT_FOUND");
    await place.sandboxes.destroy(ALICE, id);
    expect((await place.run(made.id, "cat a.txt b.txt")).stdout).toBe("mine\nmine\n");
    expect(await layersOf(place)).toHaveLength(1);
    await place.sandboxes.destroy(ALICE, made.id);
    await eventually(async () => expect(await layersOf(place)).toEqual([]));
  });
});
