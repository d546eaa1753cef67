import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { identityOf, reasonAgainst } from "../../../test/support/identity.ts";
import { agentfense, scratch, startMount } from "./run-cli.ts";

/** `project/` with a secret and an empty `view/`, and a directory for temporary files of its own. */
async function places() {
  const cwd = await scratch();
  const temporary = await scratch();
  await mkdir(join(cwd, "project/src"), { recursive: true });
  await mkdir(join(cwd, "view"));
  await writeFile(join(cwd, "project/.env"), "TOKEN=1");
  await writeFile(join(cwd, "project/README.md"), "hello\n");
  await writeFile(join(cwd, "project/src/main.c"), "int main;\n");
  return { cwd, temporary, view: join(cwd, "view"), surroundings: { cwd, env: { TMPDIR: temporary } } };
}

async function isMounted(path: string): Promise<boolean> {
  return (await readFile("/proc/self/mountinfo", "utf8")).includes(` ${path} `);
}

describe("agentfense mount", () => {
  test("shows the directory as agent-safe allows, says so in one line, and is gone after SIGTERM", async () => {
    const { cwd, temporary, view, surroundings } = await places();
    const mount = await startMount(["project", "view"], surroundings);

    expect(mount.ready).toMatch(`agentfense: mounted ${cwd}/project at ${view} (preset agent-safe, temporary delta`);
    expect(await readdir(view)).toEqual(["README.md", "src"]);
    expect(await readFile(join(view, "README.md"), "utf8")).toBe("hello\n");
    await expect(readFile(join(view, ".env"))).rejects.toMatchObject({ code: "ENOENT" });
    await expect(writeFile(join(view, "src/main.c"), "")).rejects.toMatchObject({ code: "EACCES" });
    await mkdir(join(view, "output"));
    await writeFile(join(view, "output/report.txt"), "done");
    expect(await readFile(join(view, "output/report.txt"), "utf8")).toBe("done");

    expect(await mount.end("SIGTERM")).toEqual({ code: 0, stdout: [], stderr: "" });
    expect(await isMounted(view)).toBe(false);
    expect(await readdir(join(cwd, "project"))).toEqual([".env", "README.md", "src"]);
    expect(await readdir(temporary)).toEqual([]);
  });

  test("SIGINT unmounts too", async () => {
    const { view, surroundings } = await places();
    const mount = await startMount(["project", "view"], surroundings);
    expect(await mount.end("SIGINT")).toEqual({ code: 0, stdout: [], stderr: "" });
    expect(await isMounted(view)).toBe(false);
  });

  test("a kept delta is there again at the next mount", async () => {
    const { view, cwd, surroundings } = await places();
    const first = await startMount(
      ["--preset", "full-access", "--delta", "kept/delta", "project", "view"],
      surroundings,
    );
    await writeFile(join(view, "README.md"), "changed\n");
    await first.end("SIGTERM");
    expect(await readFile(join(cwd, "project/README.md"), "utf8")).toBe("hello\n");
    expect(await readFile(join(cwd, "kept/delta/tree/README.md"), "utf8")).toBe("changed\n");

    const second = await startMount(
      ["--preset", "full-access", "--delta", "kept/delta", "project", "view"],
      surroundings,
    );
    expect(await readFile(join(view, "README.md"), "utf8")).toBe("changed\n");
    await second.end("SIGTERM");
  });

  test("after SIGKILL the next start removes the dead mount and the abandoned delta", async () => {
    const { temporary, view, surroundings } = await places();
    const killed = await startMount(["project", "view"], surroundings);
    await killed.end("SIGKILL");
    await expect(readdir(view)).rejects.toMatchObject({ code: "ENOTCONN" });
    expect(await readdir(temporary)).toHaveLength(1);

    const next = await startMount(["project", "view"], surroundings);
    expect(await readdir(view)).toEqual(["README.md", "src"]);
    expect(await readdir(temporary)).toHaveLength(1);
    expect(await next.end("SIGTERM")).toEqual({
      code: 0,
      stdout: [],
      stderr: `agentfense: removed a dead mount at ${view}\n`,
    });
    expect(await isMounted(view)).toBe(false);
    expect(await readdir(temporary)).toEqual([]);
  });

  test("a mount point in use is refused and goes on working", async () => {
    const { view, surroundings } = await places();
    const first = await startMount(["project", "view"], surroundings);
    const second = await agentfense(["mount", "project", "view"], surroundings);
    expect({ code: second.code, reason: second.stderr.split("\n")[0] }).toEqual({
      code: 2,
      reason: `agentfense: something is already mounted at ${view}`,
    });
    expect(await readdir(view)).toEqual(["README.md", "src"]);
    expect(await first.end("SIGTERM")).toEqual({ code: 0, stdout: [], stderr: "" });
  });

  test("--events prints refusals as JSON lines", async () => {
    const { view, surroundings } = await places();
    const mount = await startMount(["--events", "project", "view"], surroundings);
    await expect(writeFile(join(view, "src/main.c"), "")).rejects.toMatchObject({ code: "EACCES" });
    const { code, stderr } = await mount.end("SIGTERM");
    expect(code).toBe(0);
    const events = stderr
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(events).toContainEqual(
      expect.objectContaining({ kind: "permission_denied", path: "/src/main.c", level: "read", rule: 0 }),
    );
  });

  test("--quota bounds what can be written", async () => {
    const { view, surroundings } = await places();
    const mount = await startMount(["--preset", "full-access", "--quota", "64k", "project", "view"], surroundings);
    await writeFile(join(view, "small"), Buffer.alloc(16 * 1024));
    await expect(writeFile(join(view, "big"), Buffer.alloc(1024 * 1024))).rejects.toMatchObject({
      errno: -constants.errno.EDQUOT,
    });
    expect(await mount.end("SIGTERM")).toMatchObject({ code: 0 });
  });

  test("--owner shows every entry as owned by that user", async () => {
    const { view, surroundings } = await places();
    const mount = await startMount(["--owner", "1234:4321", "project", "view"], surroundings);
    const { uid, gid } = await stat(join(view, "README.md"));
    expect({ uid, gid }).toEqual({ uid: 1234, gid: 4321 });
    await mount.end("SIGTERM");
  });

  test("a process that sits in the mount does not keep it", async () => {
    const { view, surroundings } = await places();
    const mount = await startMount(["project", "view"], surroundings);
    const sitter = spawn("sleep", ["600"], { cwd: join(view, "src"), stdio: "ignore" });
    await once(sitter, "spawn");
    try {
      expect((await mount.end("SIGINT")).code).not.toBeNull();
      expect(await isMounted(view)).toBe(false);
    } finally {
      sitter.kill("SIGKILL");
      await once(sitter, "exit");
    }
  });

  test("an ordinary user can mount, and leaves nothing behind either", async ({ skip }) => {
    const reason = reasonAgainst("user");
    if (reason !== undefined) skip(reason);
    const identity = identityOf("user");
    const { cwd, temporary, view, surroundings } = await places();
    for (const path of [cwd, temporary, view]) await chown(path, identity.uid, identity.gid);
    const user = { ...surroundings, identity };
    // The shell goes there itself: root, who starts it, is not let into a user's mount.
    const sh = (script: string) =>
      execFileSync("sh", ["-c", `cd view && ${script}`], { ...identity, cwd, encoding: "utf8" });

    const killed = await startMount(["project", "view"], user);
    await killed.end("SIGKILL");
    const mount = await startMount(["project", "view"], user);
    expect(sh("ls -A")).toBe("README.md\nsrc\n");
    // Directories that nobody may enter must not stop the removal of the temporary delta.
    sh("mkdir -p output/closed/inner && chmod 0 output/closed/inner output/closed");
    expect(await mount.end("SIGTERM")).toMatchObject({ code: 0 });

    expect(await isMounted(view)).toBe(false);
    expect(await readdir(temporary)).toEqual([]);
  });
});
