import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openIsolation } from "@agentfense/server/isolation";
import { afterAll, beforeAll, expect, test } from "vitest";
import { aWhile } from "../../support/eventually.ts";
import { instancesIn, leftovers } from "../../support/leftovers.ts";
import { rounds } from "../../support/rounds.ts";

let home: string;
let stateDirectory: string;
let project: string;
let deltas: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "agentfense-faults-"));
  await chmod(home, 0o711);
  [stateDirectory, project, deltas] = [join(home, "state"), join(home, "project"), join(home, "deltas")];
  await mkdir(stateDirectory, { mode: 0o711 });
  await mkdir(project);
  await mkdir(deltas);
  await writeFile(join(project, "file"), "content\n");
});

afterAll(async () => {
  await rm(home, { recursive: true, force: true });
});

/** Starts a busy server, kills it after so many of its steps and a moment more. */
async function killedServer(steps: number, momentMs: number): Promise<string> {
  const args = [join(import.meta.dirname, "busy-server.ts"), stateDirectory, project, deltas, "bwrap"];
  const server = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(server, "exit");
  let seen = "";
  await new Promise<void>((resolve) => {
    server.stdout.on("data", (letters: Buffer) => {
      seen += letters.toString();
      if (seen.length >= steps) resolve();
    });
    server.once("exit", () => resolve());
  });
  await aWhile(momentMs);
  server.kill("SIGKILL");
  await exited;
  return seen;
}

test("a server killed at any moment is cleaned up after by the next one, which works", async () => {
  const cycles = rounds(2);
  for (let cycle = 0; cycle < cycles; cycle += 1) {
    const seen = await killedServer(1 + Math.floor(Math.random() * 40), Math.random() * 20);
    expect(seen, "the server got to work").toMatch(/^O/);
    const dead = instancesIn(stateDirectory);
    expect(dead.length).toBe(1);
    {
      await using isolation = await openIsolation({ stateDirectory });
      await using sandbox = await isolation.create({
        runtime: "bwrap",
        workspaces: [{ lowers: [project], rules: [{ pattern: "**/*", permission: "read" }] }],
      });
      await sandbox.start();
      const { stdout } = await sandbox.exec({ command: "cat file" });
      expect(stdout.toString()).toBe("content\n");
    }
    const nothing = { mounts: [], controlGroups: [], processes: [], stateEntries: [] };
    expect(leftovers(stateDirectory, dead), `cycle ${cycle}, killed after ${seen}`).toEqual(nothing);
    expect(await readdir(stateDirectory)).toEqual([]);
  }
});
