import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { GrpcClient } from "../../support/grpc-client.ts";
import { KilledServer } from "../../support/killed-server.ts";
import { Project, serveProjects } from "../../support/project.ts";
import { rounds } from "../../support/rounds.ts";
import { TestServer } from "../../support/server.ts";

// A sync that something comes in the way of: the end of the server, a full disk, or a writer that goes on.

const NAMES = Array.from({ length: 40 }, (_, index) => `f${index}`);
const generation = (number: number): string => `generation ${number}\n`.repeat(500);

test("SYNC-11 a sync cut short by a kill leaves every file old or new, and is made up for", async () => {
  await using killed = await KilledServer.start();
  const files = Object.fromEntries(NAMES.map((name) => [name, generation(0)]));
  let project = await Project.make(killed.server, killed.grpc, files);
  const id = await project.sandbox();
  for (let round = 1; round <= rounds(3); round++) {
    const command = `for i in ${NAMES.join(" ")}; do yes 'generation ${round}' | head -500 >$i; done`;
    const during = project;
    const { isAcknowledged } = await killed.killDuring(join(project.tree, "../staging"), () => during.run(id, command));
    project = project.on(killed.grpc);
    const found = new Set(Object.values(await project.state()));
    const whole = [generation(round - 1), generation(round)];
    expect([...found].filter((content) => !whole.includes(content))).toEqual([]);
    if (isAcknowledged) expect([...found]).toEqual([generation(round)]);
    // The command had ended, so all of it is in the delta or in the codebase.
    const { sync_problems } = await project.run(id, "true");
    expect(sync_problems).toEqual([]);
    expect(new Set(Object.values(await project.state()))).toEqual(new Set([generation(round)]));
    expect(await project.changes(id)).toEqual([]);
  }
});

describe("on a disk that is full", () => {
  const reason = process.getuid?.() === 0 ? undefined : "a file system of one's own needs root";
  if (reason !== undefined) process.stdout.write(`skipped: a full disk: ${reason}\n`);

  test.skipIf(reason !== undefined)("SYNC-11 nothing is half written, and the next sync does it", async () => {
    const directory = mkdtempSync(join(tmpdir(), "agentfense-full-"));
    const disk = join(directory, "disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", disk]);
    onTestFinished(() => {
      execFileSync("umount", ["-l", disk]);
      rmSync(directory, { recursive: true, force: true });
    });
    const settings = { storage: { codebase_path: join(disk, "codebases") } };
    await using server = await TestServer.start({ directory, settings });
    using grpc = new GrpcClient(server.grpc);
    const { id: codebase } = await grpc.call("CodebaseService", "CreateCodebase", { name: "p", owner_id: "tester" });
    const project = new Project(disk, grpc, codebase as string);
    await project.write({ "a.txt": "a\n", "b.txt": "b\n" });
    const id = await project.sandbox();
    const tooMuch = "echo new >a.txt; head -c 6000000 /dev/zero >big1; head -c 6000000 /dev/zero >big2; echo z >z.txt";
    const { sync_problems, synced_version } = await project.run(id, tooMuch);
    const state = await project.state();
    expect(sync_problems.length).toBeGreaterThan(0);
    for (const [path, whole] of Object.entries({ "a.txt": ["a\n", "new\n"], "b.txt": ["b\n"] })) {
      expect(whole).toContain(state[path]);
    }
    for (const path of ["big1", "big2"]) expect([undefined, 6_000_000]).toContain(state[path]?.length);
    expect([0, 2]).toContain(Number(synced_version));
    const again = await project.run(id, "rm -f big1 big2; echo newer >b.txt");
    expect(again.sync_problems).toEqual([]);
    expect(await project.state()).toEqual({ "a.txt": "new\n", "b.txt": "newer\n", "z.txt": "z\n" });
  });
});

describe("while the agent writes", () => {
  const ground = serveProjects();

  test("SYNC-12 what changes during the sync is synced whole or later", async () => {
    const project = await ground.project({ "a.txt": "a\n" });
    const id = await project.sandbox();
    const session = await project.session(id);
    const writer = `
import os, itertools
log = open("log", "a")
for n in itertools.count():
    letter = "abcdefghij"[n % 10]
    with open("next", "w") as f: f.write(letter * 300000)
    os.rename("next", "whole")
    log.write("%d\\n" % n); log.flush()
    if os.path.exists("stop"): break
`;
    await project.run(id, "cat >writer.py", { stdin: writer });
    await session("python3 writer.py & sleep 0.2");
    let lines = 0;
    for (let sync = 0; sync < rounds(12); sync++) {
      await project.run(id, "echo x >>a.txt");
      const { whole = "", log = "" } = onDisk(project, ["whole", "log"]);
      expect(whole).toBe((whole[0] ?? "").repeat(whole.length));
      expect([0, 300_000]).toContain(whole.length);
      const now = log.split("\n").length - 1;
      expect(log).toBe(Array.from({ length: now }, (_, index) => `${index}\n`).join(""));
      expect(now).toBeGreaterThanOrEqual(lines);
      lines = now;
    }
    await session("touch stop; wait; rm stop");
    const { stdout, sync_problems } = await project.run(id, "sha256sum <whole; sha256sum <log");
    expect(sync_problems).toEqual([]);
    const outside = execFileSync("sh", ["-c", "sha256sum <whole; sha256sum <log"], {
      cwd: project.tree,
      encoding: "utf8",
    });
    expect(outside).toBe(stdout);
    expect(Object.keys(await project.state()).sort()).toEqual(["a.txt", "log", "whole", "writer.py"]);
    expect(await project.changes(id)).toEqual([]);
  });

  test("SYNC-12 a file that is held open for writing stays dirty until it is closed, and loses nothing", async () => {
    const project = await ground.project({ "a.txt": "0\n" });
    const id = await project.sandbox();
    const session = await project.session(id);
    await session("exec 3>>a.txt");
    for (const number of [1, 2, 3]) {
      await session(`echo ${number} >&3`);
      const expected = Array.from({ length: number + 1 }, (_, index) => `${index}\n`).join("");
      expect(onDisk(project, ["a.txt"])["a.txt"]).toBe(expected);
    }
    await session("echo 4 >&3; exec 3>&-");
    await project.stop(id);
    expect(await project.state()).toEqual({ "a.txt": "0\n1\n2\n3\n4\n" });
  });
});

function onDisk(project: Project, names: readonly string[]): Readonly<Record<string, string>> {
  const read = (name: string): string => {
    try {
      return readFileSync(join(project.tree, name), "utf8");
    } catch {
      return "";
    }
  };
  return Object.fromEntries(names.map((name) => [name, read(name)]));
}
