import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { KilledServer } from "../../support/killed-server.ts";
import { GuardedServer } from "../../support/owners.ts";
import { Project, serveProjects, stateOf } from "../../support/project.ts";
import { rounds } from "../../support/rounds.ts";

// Who may write what into a codebase, and whose work was the last.

const ground = serveProjects();
const MANUAL = { sync: "SYNC_MODE_MANUAL" };

test("SYNC-17 the rules at the time of the sync decide, not those at the time of the write", async () => {
  const project = await ground.project({ "x.txt": "x\n", "y.txt": "y\n", "z.txt": "z\n", "d/x": "dx\n" });
  const [a, b] = [await project.sandbox({}, MANUAL), await project.sandbox()];
  await project.run(a, "echo a >x.txt; echo a >y.txt; rm z.txt; mv d e; ln -s x.txt link");
  await project.setLevels(a, { "/x.txt": "read", "/z.txt": "view", "/d/**": "none", "/link": "none" });
  await project.run(b, "echo b >x.txt");
  const { outcomes } = await project.apply(a);
  expect(await project.state()).toEqual({
    d: "/",
    "d/x": "dx\n",
    e: "/",
    "e/x": "dx\n",
    "x.txt": "b\n",
    "y.txt": "a\n",
    "z.txt": "z\n",
  });
  expect(outcomes.find(({ change }) => change.path === "/x.txt")).toMatchObject({ applied: false });
  // What was refused waits in the delta: it is written when the rules allow it, as what it is, a conflict.
  await project.setLevels(a, {});
  const { version } = await project.apply(a, { paths: ["/x.txt"] });
  expect((await project.state())["x.txt"]).toBe("a\n");
  expect((await project.version(version)).conflicts).toEqual([
    { path: "x.txt", replaced_version: "2", replaced_sandbox_id: b },
  ]);
});

test("SYNC-17 only what a sandbox changed itself is written", async () => {
  const project = await ground.project({ "a.txt": "a\n", "b.txt": "b\n", "d/x": "x\n", "d/y": "y\n" });
  const [one, two] = [await project.sandbox({}, MANUAL), await project.sandbox({}, MANUAL)];
  await project.run(one, "cat *.txt d/* >/dev/null; echo one >>d/x; mkdir d/new");
  await project.run(two, "cat *.txt d/* >/dev/null; echo two >>d/y; rm a.txt");
  await project.write({ "b.txt": "uploaded\n", "d/z": "z\n" });
  const first = await project.apply(one);
  const second = await project.apply(two);
  const paths = async (version: number): Promise<string[]> =>
    (await project.version(version)).changes.map(({ path }) => path).sort();
  expect(await paths(first.version)).toEqual(["d/new", "d/x"]);
  expect(await paths(second.version)).toEqual(["a.txt", "d/y"]);
  expect(await project.state()).toEqual({
    "b.txt": "uploaded\n",
    d: "/",
    "d/new": "/",
    "d/x": "x\none\n",
    "d/y": "y\ntwo\n",
    "d/z": "z\n",
  });
});

test("SYNC-18 times in the future or the past win nothing and hide nothing", async () => {
  const project = await ground.project({ "f.txt": "0\n", "g.txt": "0\n" });
  const [early, late] = [await project.sandbox(), await project.sandbox()];
  const manual = await project.sandbox({}, MANUAL);
  await project.run(manual, "echo manual >g.txt; touch -d 1999-01-01 g.txt");
  await project.run(
    early,
    "echo early >f.txt; touch -d 2099-01-01 f.txt; echo early >g.txt; touch -d 2099-01-01 g.txt",
  );
  await project.run(late, "echo late >f.txt; touch -d 1980-01-01 f.txt");
  await project.run(early, "true");
  await project.stop(early);
  expect(await project.state()).toEqual({ "f.txt": "late\n", "g.txt": "early\n" });
  const { version } = await project.apply(manual);
  expect(await project.state()).toEqual({ "f.txt": "late\n", "g.txt": "manual\n" });
  const { conflicts, created_at } = await project.version(version);
  expect(conflicts).toEqual([{ path: "g.txt", replaced_version: "2", replaced_sandbox_id: early }]);
  expect(Math.abs(Number((created_at as { seconds: string }).seconds) * 1000 - Date.now())).toBeLessThan(60_000);
});

test("SYNC-19 a copy-up without a change overwrites nothing, whatever made it", async () => {
  const names = ["append", "touch", "chmod", "readwrite", "same", "chown", "future", "truncate"];
  const old = Object.fromEntries(names.map((name) => [name, "old\n"]));
  const newer = Object.fromEntries(names.map((name) => [name, "newer\n"]));
  const project = await ground.project({ ...old, gone: "old\n" });
  const manual = await project.sandbox({}, MANUAL);
  const commands = [
    ": >>append",
    ": >>gone",
    "touch touch",
    "chmod 755 chmod; chmod 644 chmod",
    "exec 3<>readwrite",
    "cat same >/tmp/same; cat /tmp/same >same",
    "chown $(id -u):$(id -g) chown",
    "touch -d 2099-01-01 future",
    "truncate -s 4 truncate",
  ].join("; ");
  await project.run(manual, commands);
  expect(await project.changes(manual)).toEqual([]);
  // The same during a command that others overtake.
  const busy = await project.sandbox();
  const session = await project.session(busy);
  await session(`${commands}; exec 4>>append 5<>same`);
  await project.write({ ...newer, gone: null });
  await project.apply(manual);
  await project.run(busy, "true");
  expect(await project.state()).toEqual(newer);
  await session("exec 3>&- 4>&- 5>&-");
  await project.stop(busy);
  await project.stop(manual);
  expect(await project.state()).toEqual(newer);
  const touched = Array.from({ length: await project.newest() }, (_, index) => project.version(index + 1));
  expect((await Promise.all(touched)).map(({ origin }) => origin)).toEqual([
    "VERSION_ORIGIN_UPLOAD",
    "VERSION_ORIGIN_UPLOAD",
  ]);
});

test("SYNC-19 a change that keeps size and time is a change", async () => {
  const project = await ground.project({ "a.txt": "aaaa\n" });
  const id = await project.sandbox();
  const answer = await project.run(
    id,
    "touch -r a.txt /tmp/time; printf bbbb | dd of=a.txt conv=notrunc status=none; touch -r /tmp/time a.txt; cat a.txt",
  );
  expect(answer.stdout).toBe("bbbb\n");
  expect(await project.state()).toEqual({ "a.txt": "bbbb\n" });
});

test("SYNC-19 what was synced and is still open is not synced again over newer work", async () => {
  const project = await ground.project({ log: "start\n" });
  const id = await project.sandbox();
  const session = await project.session(id);
  await session("exec 3>>log; echo one >&3");
  expect(await project.state()).toEqual({ log: "start\none\n" });
  await project.write({ log: "uploaded\n" });
  await project.run(id, "echo other >other");
  expect(await project.state()).toEqual({ log: "uploaded\n", other: "other\n" });
  // The next write is the last one, and says whose work it replaced.
  const { synced_version } = await session("echo two >&3; exec 3>&-");
  expect(await project.state()).toEqual({ log: "start\none\ntwo\n", other: "other\n" });
  expect((await project.version(Number(synced_version))).conflicts).toEqual([
    { path: "log", replaced_version: "3", replaced_sandbox_id: "" },
  ]);
});

test("SYNC-20 nobody syncs who may not, and what may not be written is not", async () => {
  await using guarded = await GuardedServer.start();
  const { alice, mallory, reader } = guarded;
  const { id } = await alice.grpc.call("CodebaseService", "CreateCodebase", { name: "project" });
  const project = new Project(guarded.server.directory, alice.grpc, id as string);
  await project.write({ "a.txt": "a\n" });
  const manual = await project.sandbox({}, MANUAL);
  await project.run(manual, "echo changed >a.txt; echo new >b.txt");
  const request = { sandbox_id: manual };
  for (const method of ["ApplyChanges", "DiscardChanges"]) {
    expect((await mallory.grpc.failure("SandboxService", method, request)).code).toBe(5);
    expect((await reader.grpc.failure("SandboxService", method, request)).code).toBe(7);
  }
  // A command would sync, too.
  const command = { sandbox_id: manual, command: "true" };
  expect((await reader.grpc.failure("SandboxService", "Exec", command)).code).toBe(7);
  expect((await mallory.grpc.failure("SandboxService", "Exec", command)).code).toBe(5);
  const never = await project.sandbox({}, { sync: "SYNC_MODE_NEVER" });
  await project.run(never, "echo never >a.txt; rm -f a.txt; echo never >never.txt");
  expect(await alice.grpc.failure("SandboxService", "ApplyChanges", { sandbox_id: never })).toMatchObject({ code: 9 });
  const pinned = await project.sandbox({}, { codebase_version: 1 });
  await project.run(pinned, "echo pinned >a.txt");
  expect(await alice.grpc.failure("SandboxService", "ApplyChanges", { sandbox_id: pinned })).toMatchObject({ code: 9 });
  const readOnly = await project.sandbox({ "**": "read" });
  expect(await project.run(readOnly, "echo x >a.txt; rm -f a.txt; echo x >c.txt; ls")).toMatchObject({
    stdout: "a.txt\n",
    synced_version: "0",
  });
  for (const sandbox of [never, pinned, readOnly]) {
    await project.stop(sandbox);
    await project.destroy(sandbox);
  }
  expect(await project.state()).toEqual({ "a.txt": "a\n" });
  expect(await project.newest()).toBe(1);
  expect((await project.apply(manual)).version).toBe(2);
});

test("SYNC-22 a discarded or destroyed delta is gone from the disk, and no other sandbox has its directory", async () => {
  const project = await ground.project({ "a.txt": "a\n" });
  const secret = "the agent's secret";
  const mounts = join(ground.server.directory, "mounts");
  const everything = (): string => JSON.stringify(stateOf(join(mounts, "delta")));
  const id = await project.sandbox({}, MANUAL);
  await project.run(
    id,
    `echo "${secret}" >a.txt; mkdir -p d/e; echo "${secret}" >d/e/f; rm d/e/f; echo "${secret}" >g`,
  );
  expect(everything()).toContain(secret);
  await project.grpc.call("SandboxService", "DiscardChanges", { sandbox_id: id });
  expect(everything()).not.toContain(secret);
  expect((await project.run(id, "cat a.txt; ls")).stdout).toBe("a\na.txt\n");
  await project.run(id, `echo "${secret}" >h`);
  await project.destroy(id);
  expect(existsSync(join(project.delta(id), ".."))).toBe(false);
  expect(everything()).not.toContain(secret);
  const others = await Promise.all(Array.from({ length: 5 }, () => project.sandbox({}, MANUAL)));
  expect(new Set([id, ...others]).size).toBe(6);
  for (const other of others) expect((await project.run(other, "ls; cat *")).stdout).toBe("a.txt\na\n");
  for (const other of others) await project.destroy(other);
  expect(readdirSync(join(mounts, "delta")).filter((name) => others.includes(name))).toEqual([]);
});

test("SYNC-22 nor is a delta left behind when the server is killed while it destroys", async () => {
  await using killed = await KilledServer.start();
  let project = await Project.make(killed.server, killed.grpc, { "a.txt": "a\n" });
  const deltas = join(killed.directory, "mounts/delta");
  for (let round = 0; round < rounds(2); round++) {
    const id = await project.sandbox({}, MANUAL);
    await project.run(id, "for i in $(seq 200); do echo secret >f$i; done");
    const during = project;
    await killed.killDuring(deltas, () => during.destroy(id));
    project = project.on(killed.grpc);
    const { sandboxes } = await project.grpc.call("SandboxService", "ListSandboxes", { codebase_id: project.id });
    const ids = (sandboxes as { id: string }[]).map((sandbox) => sandbox.id);
    expect(readdirSync(deltas).filter((name) => !ids.includes(name))).toEqual([]);
    for (const left of ids) await project.destroy(left);
    expect(readdirSync(deltas)).toEqual([]);
  }
});
