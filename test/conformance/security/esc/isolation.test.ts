import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { lstatSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { expectOnly } from "../outcomes.ts";
import { describeBoxes } from "./boxes.ts";
import { flat } from "./facts.ts";
import type { HostSide } from "./host.ts";

const KEY = 0x4145_0000 + (process.pid & 0xffff);
const NOBODY = { uid: 65534, gid: 65534 };

describeBoxes(
  "ESC: sandboxes apart from each other and from the host",
  (box) => {
    test("ESC-48 /tmp, /dev/shm, System V and POSIX objects are shared with nobody", async () => {
      const [hostName, otherName] = [`host-${box.sandbox.id}`, `other-${box.sandbox.id}`];
      const other = await box.another();
      const made = await other.begin<Record<string, unknown>>("ESC-48-make", { name: otherName, key: KEY });
      expect(made.facts).toMatchObject({ "system v": { memory: "OK", semaphores: "OK", queue: "OK" } });
      await using host = await onHost("ESC-48-make", { name: hostName, key: KEY + 1 });
      expect(host.facts).toMatchObject({ files: { "/tmp": "OK", "/dev/shm": "OK" }, "posix queue": "OK" });
      for (const key of [KEY, KEY + 1]) {
        const facts = await box.attempt<Record<string, unknown>>("ESC-48", { names: [hostName, otherName], key });
        expectOnly(flat(facts.files), "<ENOENT>", "<EACCES>");
        expectOnly(flat(facts["system v"]), "ENOENT");
        expectOnly(flat(facts["posix queues"]), "ENOENT");
        expect(facts.listed).toEqual([0, 0, 0]);
      }
      await made.end();
    });

    test("ESC-53 what the host mounts below the workspace later does not appear inside", async () => {
      // Below a mount of an ordinary user nobody of the host can mount anything: it is closed even to root.
      if (box.kind.server !== "root") return;
      const mounts = await box.attempt<Record<string, { propagation: string[] }>>("ESC-12");
      // An engine ties the root of its containers to its own store, where nothing of ours is ever mounted.
      const { "/": root, ...others } = mounts;
      const all = Object.entries(box.kind.runtime === "docker" ? others : { "/": root!, ...others });
      expect.soft(all.filter(([, { propagation }]) => propagation.length > 0)).toEqual([]);
      const place = join(box.host.workspaceOf(box.sandbox.id), "work/sub");
      const waiting = await box.sandbox.begin<string[]>("ESC-53", { path: "/workspace/work/sub" });
      execFileSync("mount", ["-t", "tmpfs", "none", place]);
      try {
        writeFileSync(join(place, "planted-by-the-host"), "");
        expect(await waiting.end()).toEqual(waiting.facts);
      } finally {
        execFileSync("umount", [place]);
      }
    });

    test("ESC-54 another sandbox's mount, delta and processes are out of reach", async () => {
      const other = await box.another();
      const running = await other.begin("ESC-15");
      const [mountPoint, workspace] = [box.host.mountPointOf(other.id), box.host.workspaceOf(other.id)];
      const paths = [box.host.state, mountPoint, join(workspace, "README.md"), other.delta, box.host.codebase];
      const facts = await box.attempt<Record<string, unknown>>("ESC-54", { paths, texts: [other.id, box.host.home] });
      expectOnly(flat(facts.paths), "ENOENT");
      expectOnly(flat(facts["through process 1"]), "ENOENT", "EACCES");
      expect(facts.listed).toEqual([]);
      // Beside the sandboxes, on the host, a stranger gets no further, also when the kernel has the listing cached.
      await other.exec({ command: "ls -lR /workspace" });
      for (const path of [mountPoint, workspace, join(workspace, "work"), other.delta]) {
        const { stdout } = spawnSync("ls", ["-A", path], { ...NOBODY, encoding: "utf8" });
        expect(stdout, path).toBe("");
      }
      expect(lstatSync(other.delta).mode & 0o077, "the delta is closed to others").toBe(0);
      const second = await box.sandbox.begin("ESC-15");
      if (box.kind.server === "root" && box.kind.runtime === "bwrap") {
        expect(second.identity.uid, "a user of its own").not.toBe(running.identity.uid);
      }
      await second.end();
      await running.end();
    });
  },
  { prepare: shareMounts },
);

/** Makes the server's state directory a mount that passes on what is mounted below it, as / is on most hosts. */
function shareMounts({ state }: HostSide): Disposable {
  execFileSync("mount", ["--bind", state, state]);
  execFileSync("mount", ["--make-shared", state]);
  return { [Symbol.dispose]: () => execFileSync("umount", [state]) };
}

/** Runs one of the programs for the inside on the host. */
async function onHost(row: string, knowledge: object): Promise<AsyncDisposable & { facts: unknown }> {
  const script = join(import.meta.dirname, "inside.py");
  const child = spawn("python3", ["-B", script, row, JSON.stringify(knowledge)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const { value } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  return {
    facts: JSON.parse(value ?? ""),
    async [Symbol.asyncDispose]() {
      const ended = once(child, "close");
      child.stdin.end();
      await ended;
    },
  };
}
