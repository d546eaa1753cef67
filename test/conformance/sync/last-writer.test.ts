import { existsSync, lstatSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ExecResult } from "../../support/belongings.ts";
import { eventually } from "../../support/eventually.ts";
import { type Project, type State, serveProjects, stateOf } from "../../support/project.ts";
import { rounds } from "../../support/rounds.ts";

// Several sandboxes and a client that uploads, all on one codebase.

const ground = serveProjects();
const MANUAL = { sync: "SYNC_MODE_MANUAL" };
const NEVER = { sync: "SYNC_MODE_NEVER" };

/** Everything that a delta holds, marks included. */
function deltaOf(project: Project, id: string): State {
  return stateOf(project.delta(id));
}

/** Starts the command, and resolves when it has made the file in its delta; `ended` has its result. */
async function begun(
  project: Project,
  id: string,
  command: string,
  sign: string,
): Promise<{ readonly ended: Promise<ExecResult> }> {
  const ended = project.run(id, command);
  await eventually(() => expect(existsSync(join(project.delta(id), sign))).toBe(true));
  return { ended };
}

describe("the last writer", () => {
  test("L-23 wins as a whole, by the order of the syncs, and the version and an event say whose work it replaced", async () => {
    const project = await ground.project({ "a.txt": "0\n", "b.txt": "0\n" });
    const [slow, quick] = [await project.sandbox(), await project.sandbox()];
    const { ended } = await begun(
      project,
      slow,
      "echo slow >a.txt; echo slow >slow.txt; until [ -e go ]; do sleep 0.05; done",
      "slow.txt",
    );
    await project.run(quick, "echo quick >a.txt; echo quick >b.txt");
    await project.write({ "b.txt": "uploaded\n", "slow.txt": "uploaded\n" });
    expect(await project.state()).toEqual({ "a.txt": "quick\n", "b.txt": "uploaded\n", "slow.txt": "uploaded\n" });
    await project.write({ go: "" });
    const { synced_version } = await ended;
    expect(await project.state()).toEqual({ "a.txt": "slow\n", "b.txt": "uploaded\n", go: "", "slow.txt": "slow\n" });
    const version = await project.version(Number(synced_version));
    expect(version).toMatchObject({ origin: "VERSION_ORIGIN_SYNC", sandbox_id: slow });
    expect(version.conflicts).toEqual([
      { path: "a.txt", replaced_version: "2", replaced_sandbox_id: quick },
      { path: "slow.txt", replaced_version: "3", replaced_sandbox_id: "" },
    ]);
    expect(await project.events("sync_conflict", slow)).toEqual([
      { path: "/workspace/a.txt", version: 5, replaced_version: 2, replaced_sandbox: quick },
      { path: "/workspace/slow.txt", version: 5, replaced_version: 3, replaced_sandbox: "" },
    ]);
    // What was replaced is not lost.
    expect(String(await project.grpc.download(project.id, "a.txt", { version: 2 }))).toBe("quick\n");
  });

  test("L-23 who writes what nobody touched meanwhile replaces nobody's work", async () => {
    const project = await ground.project({ "a.txt": "0\n", "b.txt": "0\n" });
    const [one, two] = [await project.sandbox(), await project.sandbox()];
    for (let turn = 0; turn < 3; turn++) {
      await project.run(one, `echo one${turn} >a.txt`);
      await project.run(two, `echo two${turn} >>a.txt; echo two >b.txt`);
      await project.write({ "a.txt": `upload ${turn}\n` });
    }
    const versions = Array.from({ length: await project.newest() }, (_, index) => project.version(index + 1));
    expect((await Promise.all(versions)).flatMap(({ conflicts }) => conflicts)).toEqual([]);
    expect(await project.events("sync_conflict")).toEqual([]);
  });

  test("L-23 a deletion counts as work, of the last writer and of the one before", async () => {
    const project = await ground.project({ "a.txt": "0\n", "b.txt": "0\n", "c.txt": "0\n" });
    const [one, two] = [await project.sandbox({}, MANUAL), await project.sandbox()];
    await project.run(one, "rm a.txt; echo mine >>b.txt; : >>c.txt");
    await project.run(two, "echo two >a.txt; rm b.txt c.txt");
    const { version } = await project.apply(one);
    // c.txt was only opened: there is nothing to bring it back for.
    expect(await project.state()).toEqual({ "b.txt": "0\nmine\n" });
    expect((await project.version(version)).conflicts).toEqual([
      { path: "a.txt", replaced_version: "2", replaced_sandbox_id: two },
      { path: "b.txt", replaced_version: "2", replaced_sandbox_id: two },
    ]);
  });

  test("L-23 a file that was replaced once more is no younger than its first version; one that was thrown away is", async () => {
    const project = await ground.project({ "a.txt": "0\n", "b.txt": "0\n", "c.txt": "0\n" });
    const one = await project.sandbox({}, MANUAL);
    await project.run(one, "echo mine >a.txt; rm b.txt; echo mine >c.txt");
    await project.write({ "a.txt": "theirs\n", "b.txt": "theirs\n", "c.txt": "theirs\n" });
    await project.grpc.call("SandboxService", "DiscardChanges", { sandbox_id: one, paths: ["/c.txt"] });
    // As editors save; what they do with c.txt begins with what the others made of it.
    const saved = await project.run(one, "for f in a b c; do echo again >new && mv new $f.txt; done");
    expect(saved).toMatchObject({ exit_code: 0, stderr: "" });
    const { version } = await project.apply(one);
    expect(await project.state()).toEqual({ "a.txt": "again\n", "b.txt": "again\n", "c.txt": "again\n" });
    const replaced = (await project.version(version)).conflicts.map(({ path }) => path);
    expect(replaced).toEqual(["a.txt", "b.txt"]);
  });

  test("L-23 of many at once leaves each file as one of them wrote it, and all see the same", async () => {
    const project = await ground.project({ "shared.txt": "0\n" });
    const ids = await Promise.all(Array.from({ length: 4 }, () => project.sandbox()));
    const text = (who: number, turn: number): string => `sandbox ${who} turn ${turn}\n`;
    for (let turn = 0; turn < rounds(4); turn++) {
      const writers = ids.map((id, who) => {
        const line = text(who, turn).trim();
        return project.run(id, `yes '${line}' | head -2000 >shared.txt; echo '${line}' >own${who}.txt`);
      });
      const uploads = project.write({ [`upload${turn}.txt`]: "u\n", "shared.txt": `upload ${turn}\n`.repeat(2000) });
      await Promise.all([...writers, uploads]);
      const state = await project.state();
      const candidates = [`upload ${turn}\n`, ...ids.map((_, who) => text(who, turn))].map((line) => line.repeat(2000));
      expect(candidates).toContain(state["shared.txt"]);
      for (const [who] of ids.entries()) expect(state[`own${who}.txt`]).toBe(text(who, turn));
      const seen = await Promise.all(ids.map(async (id) => (await project.run(id, "head -1 shared.txt")).stdout));
      expect(new Set(seen)).toEqual(new Set([state["shared.txt"]?.slice(0, state["shared.txt"].indexOf("\n") + 1)]));
    }
  });
});

describe("sync on and off", () => {
  test("L-23 goes to the codebase after the command, when it is asked for, or never, and never reverts newer work", async () => {
    const project = await ground.project({ "shared.txt": "0\n" });
    const onExec = await project.sandbox();
    const manual = await project.sandbox({}, MANUAL);
    const never = await project.sandbox({}, NEVER);
    await project.run(never, "echo never >shared.txt; echo never >never.txt");
    await project.run(manual, "echo manual >manual.txt; echo manual >shared.txt");
    expect(await project.state()).toEqual({ "shared.txt": "0\n" });
    await project.run(onExec, "echo exec >shared.txt; echo exec >exec.txt");
    expect(await project.state()).toEqual({ "exec.txt": "exec\n", "shared.txt": "exec\n" });
    await project.apply(manual, { paths: ["manual.txt"] });
    expect(await project.state()).toEqual({ "exec.txt": "exec\n", "manual.txt": "manual\n", "shared.txt": "exec\n" });
    await project.apply(manual);
    expect((await project.state())["shared.txt"]).toBe("manual\n");
    await project.write({ "shared.txt": "uploaded\n" });
    // Nothing is left in the delta that could come again.
    await project.apply(manual);
    await project.run(manual, "true");
    await project.run(onExec, "true");
    for (const id of [onExec, manual, never]) {
      await project.stop(id);
      await project.start(id);
      await project.run(id, "cat shared.txt");
    }
    expect((await project.run(never, "cat shared.txt never.txt")).stdout).toBe("never\nnever\n");
    expect(await project.state()).toEqual({
      "exec.txt": "exec\n",
      "manual.txt": "manual\n",
      "shared.txt": "uploaded\n",
    });
  });
});

describe("what was synced", () => {
  test("L-25 leaves the delta unless it is open for writing", async () => {
    const project = await ground.project({ "a.txt": "a\n", "d/x": "x\n", "open.txt": "o\n" });
    const id = await project.sandbox();
    const session = await project.session(id);
    await session("exec 3>>open.txt; echo 1 >&3; echo b >a.txt; rm -r d; mkdir -p e/f; echo y >e/f/y; ln -s y e/f/l");
    expect(Object.keys(deltaOf(project, id))).toEqual(["open.txt"]);
    expect((await project.state())["open.txt"]).toBe("o\n1\n");
    // Newer work shows where nothing is open.
    await project.write({ "a.txt": "newer\n", "e/f/y": "newer\n", "d/x": "newer\n" });
    expect((await session("cat a.txt e/f/y d/x e/f/l")).stdout).toBe("newer\n".repeat(4));
    await session("echo 2 >&3");
    expect((await project.state())["open.txt"]).toBe("o\n1\n2\n");
    await session("exec 3>&-");
    expect(deltaOf(project, id)).toEqual({});
    expect(await project.changes(id)).toEqual([]);
    expect((await project.run(id, "cat open.txt")).stdout).toBe("o\n1\n2\n");
  });

  test("L-25 two names of one file stay with each other, and a write to one is a write to both", async () => {
    const project = await ground.project({ "a.txt": "a\n" });
    const id = await project.sandbox();
    await project.run(id, "ln a.txt b.txt");
    expect(await project.state()).toEqual({ "a.txt": "a\n", "b.txt": "a\n" });
    await project.write({ "a.txt": "uploaded\n" });
    // Nothing was written here since: there is nothing to replace the upload with.
    await project.run(id, "true");
    expect(await project.state()).toEqual({ "a.txt": "uploaded\n", "b.txt": "a\n" });
    const { synced_version } = await project.run(id, "echo more >>b.txt; cmp a.txt b.txt && stat -c %h a.txt");
    expect(await project.state()).toEqual({ "a.txt": "a\nmore\n", "b.txt": "a\nmore\n" });
    expect((await project.version(Number(synced_version))).conflicts).toEqual([
      { path: "a.txt", replaced_version: "3", replaced_sandbox_id: "" },
    ]);
  });

  test("L-25 and what was refused stays, and is synced when it may be", async () => {
    const project = await ground.project({ "a.txt": "a\n", "b.txt": "b\n" });
    const id = await project.sandbox({}, MANUAL);
    await project.run(id, "echo mine >a.txt; echo mine >b.txt");
    await project.setLevels(id, { "/a.txt": "read" });
    await project.apply(id);
    expect(Object.keys(deltaOf(project, id))).toEqual(["a.txt"]);
    await project.setLevels(id, {});
    await project.apply(id);
    expect(deltaOf(project, id)).toEqual({});
    expect(await project.state()).toEqual({ "a.txt": "mine\n", "b.txt": "mine\n" });
  });
});

const PROTECTED = { "/hidden/**": "none", "/ro/**": "read", "/seen/**": "view", "/mixed/ro.txt": "read" } as const;
const KEPT = {
  "hidden/key": "key\n",
  "mixed/ro.txt": "ro\n",
  "ro/a.txt": "ro\n",
  "ro/sub/b.txt": "ro\n",
  "seen/c.txt": "seen\n",
};
/** Each a way to change what is protected. None of them may do it, whatever they say. */
const ROUTES: Readonly<Record<string, string>> = {
  whiteouts: "rm -rf ro seen hidden mixed; rmdir ro hidden; find . -delete",
  renames:
    "mv ro ro2; mv mixed/ro.txt x; mv mine.txt ro/a.txt; mv mine.txt mixed/ro.txt; mv mixed mixed2; mv seen mixed/s",
  exchange: 'python3 -c \'import ctypes; ctypes.CDLL(None).renameat2(-100, b"mine.txt", -100, b"mixed/ro.txt", 2)\'',
  links:
    "ln -s ro r; echo x >r/a.txt; rm -f r/a.txt; ln -s ../ro mixed/r; echo x >mixed/r/a.txt; ln -sf mine.txt mixed/ro.txt",
  "hard links":
    "ln ro/a.txt l; echo x >>l; ln mine.txt ro/new; ln -f mine.txt mixed/ro.txt; ln seen/c.txt s; ln hidden/key k",
  "type changes": "rm -rf ro; mkdir -p ro; echo x >ro; rm -rf mixed; ln -s /tmp mixed; rm -rf seen; mkfifo seen",
  "opaque directories":
    "rm -rf mixed; mkdir mixed; rm -rf hidden; mkdir hidden; echo x >hidden/key; mkdir -p ro/sub/new",
  "delete and recreate": "rm -f mixed/ro.txt; echo x >mixed/ro.txt; rm -rf mixed; mkdir mixed; echo x >mixed/ro.txt",
  attributes: "chmod -R 777 .; touch -d 2001-01-01 ro/a.txt; truncate -s 0 ro/a.txt seen/c.txt",
  overwriting:
    "cp mine.txt ro/a.txt; cp -r mixed ro/; cat mine.txt >mixed/ro.txt; tar cf t.tar mixed; tar xf t.tar -C ro",
  editors: "sed -i s/ro/x/ ro/a.txt mixed/ro.txt; install mine.txt ro/a.txt; dd if=mine.txt of=ro/a.txt",
};

describe("what a sandbox may not write", () => {
  test.for(Object.entries(ROUTES))("L-26 is not changed by %s, with sync on or by hand", async ([, command]) => {
    const project = await ground.project({ ...KEPT, "mine.txt": "mine\n", "mixed/mine.txt": "mine\n" });
    const modes = modesOf(project);
    for (const request of [{}, MANUAL]) {
      const id = await project.sandbox(PROTECTED, request);
      await project.run(id, `echo new >>mine.txt; (${command}) 2>/dev/null; true`);
      if (request === MANUAL) await project.apply(id);
      await project.stop(id);
      expect(await project.state()).toMatchObject(KEPT);
      expect(modesOf(project)).toEqual(modes);
      await project.destroy(id);
    }
    const writable = (path: string): boolean => !/^(hidden|ro|seen)(\/|$)|^mixed\/ro.txt$/.test(path);
    const versions = Array.from({ length: (await project.newest()) - 1 }, (_, index) => project.version(index + 2));
    const changed = (await Promise.all(versions)).flatMap(({ changes }) => changes.map(({ path }) => path));
    expect(changed.filter((path) => !writable(path))).toEqual([]);
  });

  test("L-26 is not changed when the rules change between the write and the sync, nor by a process that goes on", async () => {
    const project = await ground.project({ ...KEPT, "late/a.txt": "a\n", "late/b.txt": "b\n" });
    const id = await project.sandbox();
    const session = await project.session(id);
    await session(
      "exec 3>>late/a.txt; (while sleep 0.02; do echo x >>late/b.txt; echo x >&3; echo y >>free.txt; done) & sleep 0.2",
    );
    await project.setLevels(id, { "/late/**": "read", ...PROTECTED });
    const [a, b] = [(await project.state())["late/a.txt"], (await project.state())["late/b.txt"]];
    for (let turn = 0; turn < 5; turn++) await project.run(id, `echo ${turn} >turn.txt; sleep 0.05`);
    await project.stop(id);
    expect(await project.state()).toMatchObject({ ...KEPT, "late/a.txt": a, "late/b.txt": b, "turn.txt": "4\n" });
    // The other may have been synced as a whole before.
    const refusals = (await project.refusals(id)).filter((line) => line !== "/workspace/late/b.txt: level read");
    expect(refusals).toEqual(["/workspace/late/a.txt: level read"]);
  });
});

function modesOf(project: Project): string[] {
  return Object.keys(KEPT).map((path) => `${path} ${lstatSync(join(project.tree, path)).mode.toString(8)}`);
}
