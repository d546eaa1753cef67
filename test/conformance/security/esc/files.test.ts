import { readdirSync, readFileSync } from "node:fs";
import { getPreset } from "@agentfense/permission";
import { listChanges } from "@agentfense/server/isolation";
import { expect, test } from "vitest";
import { withoutHanging } from "../../../support/eventually.ts";
import { expectOnly } from "../outcomes.ts";
import { describeBoxes } from "./boxes.ts";
import { flat } from "./facts.ts";
import { privilegedEntries } from "./host.ts";

type Mounts = Record<string, { readonly type: string; readonly options: string[]; readonly propagation: string[] }>;

describeBoxes("ESC: what files can do", (box) => {
  test("ESC-09 no device node can be made in the workspace", async () => {
    expectOnly(await box.attempt("ESC-09"), "EPERM");
  });

  test("ESC-10 set-id bits are dropped on every way to make or change a file", async () => {
    expectOnly(await box.attempt("ESC-10"), "0");
    expect(privilegedEntries(box.sandbox.delta)).toEqual([]);
  });

  test("ESC-11 attributes that give privileges or steer the kernel are refused", async () => {
    const facts = await box.attempt<{ refusals: Record<string, string>; names: Record<string, string[]> }>("ESC-11");
    expectOnly(facts.refusals, "EPERM", "EOPNOTSUPP", "EACCES");
    expect(Object.values(facts.names).flat()).toEqual([]);
  });

  test("ESC-12 the workspace is nosuid and nodev, on the host and inside", async () => {
    const mounts = await box.attempt<Mounts>("ESC-12");
    expect(mounts["/workspace"]?.options).toEqual(expect.arrayContaining(["nosuid", "nodev"]));
    const mountPoint = box.host.mountPointOf(box.sandbox.id);
    const line = readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .find((entry) => entry.split(" ")[4] === mountPoint);
    expect(line?.split(" ")[5]?.split(",")).toEqual(expect.arrayContaining(["nosuid", "nodev"]));
  });

  test("ESC-13 pipes and sockets in the workspace hold up neither the server nor a stop", async () => {
    const sandbox = await box.another();
    const facts = await sandbox.attempt<Record<string, unknown>>("ESC-13");
    const { made, "codebase socket": connected, ...rest } = facts;
    expectOnly(flat(made), "OK", "EPERM", "EACCES");
    expect(["ECONNREFUSED", "EACCES"]).toContain(connected);
    expect(rest).toMatchObject({ "codebase fifo": true, "open without waiting": "OK" });
    await withoutHanging(() => sandbox.stop());
    const changes = await Array.fromAsync(listChanges({ delta: sandbox.delta, lowers: [box.host.codebase] }));
    expect(changes.filter(({ type }) => type !== "other")).toEqual([]);
  });

  test("ESC-46 the system's directories are read-only or the sandbox's own", async () => {
    const name = `agentfense-planted-${box.sandbox.id}`;
    const { planted, changed } = await box.attempt<Record<string, Record<string, string>>>("ESC-46", { name });
    const theirs = Object.entries(planted!)
      .filter(([, outcome]) => outcome === "OK")
      .map(([place]) => place);
    // What could be written is memory of this sandbox: the host does not have it, another sandbox does not see it.
    for (const place of ["/usr", "/usr/bin", "/usr/lib", "/bin", "/lib", "/etc", "/sys", "/proc"]) {
      expect(theirs).not.toContain(place);
    }
    const onHost = theirs.filter((place) => readdirSync(place).includes(name));
    expect(onHost).toEqual([]);
    const another = await box.another();
    const listing = theirs.map((place) => `ls -a ${place}`).join("; ");
    const { stdout } = await another.exec({ command: `${listing}; true` });
    expect(stdout).not.toContain(name);
    expectOnly(changed!, "EROFS", "EACCES", "EPERM", "ENOENT", "EBUSY");
  });

  test("ESC-55 no request breaks the file system's server, or another sandbox", async () => {
    const [victim, attacker] = [await box.another(), await box.another()];
    const attacked = attacker.attempt<{ odd: Record<string, string>; afterwards: string }>("ESC-55", { seconds: 2 });
    const { stdout } = await victim.exec({ command: "for i in 1 2 3 4 5; do cat work/notes.txt; sleep 0.2; done" });
    expect(stdout).toBe("notes\n".repeat(5));
    const { odd, afterwards } = await attacked;
    expect(afterwards).toBe("abused");
    expect(odd).toMatchObject({
      "pread -1": "EINVAL",
      "lseek -1": "EINVAL",
      "truncate -1": "EINVAL",
      "fallocate -1": "EINVAL",
      "long name": "ENAMETOOLONG",
      "long path": "ENAMETOOLONG",
      "seek of a directory": "OK",
    });
    expectOnly(odd, "OK", "EINVAL", "EFBIG", "EDQUOT", "ENOSPC", "ENAMETOOLONG");
  });

  test("ESC-56 with agent-safe, what the host would run later is out of reach or reported", async () => {
    const delta = box.host.newDelta();
    const workspaces = [{ lowers: [box.host.codebase], delta, rules: getPreset("agent-safe") }];
    const sandbox = await box.another({ workspaces });
    const facts = await sandbox.attempt<Record<string, string>>("ESC-56");
    const planted = Object.keys(facts).filter((path) => facts[path] === "OK");
    expect(planted, "only where the agent's results go").toEqual(["output/package.json"]);
    await sandbox.stop();
    const changes = await Array.fromAsync(listChanges({ delta, lowers: [box.host.codebase] }));
    expect(changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual(["added /output/package.json"]);
  });

  test("the workspace's size and free space are those of the sandbox's quota, not of the host's disk", async () => {
    const { stdout } = await box.sandbox.exec({ command: ["stat", "-f", "-c", "%b %S", "/workspace"] });
    const [blocks = 0, size = 0] = stdout.split(" ").map(Number);
    expect(blocks * size).toBe(64 * 1024 * 1024);
  });
});
