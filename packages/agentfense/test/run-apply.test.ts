import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { reasonAgainst } from "../../../test/support/identity.ts";
import { agentfense, scratch, start } from "./run-cli.ts";
import { describeForBoth, type Places, places } from "./sandbox-places.ts";

async function run({ surroundings }: Places, ...args: readonly string[]) {
  return await agentfense(["run", "--preset", "full-access", ...args], surroundings);
}

/** The place that the last line names. */
function placeIn(stderr: string): string {
  return /what was not written back is kept in (\S+); see it with/.exec(stderr)?.[1] ?? "";
}

const WORK =
  "echo changed > README.md; mkdir output; head -c 300000 /dev/urandom > output/big; echo small > output/small";

describeForBoth("agentfense run --apply that cannot write everything back", (as) => {
  test("what the rules refuse is kept with exit code 123, and the rest is written", async () => {
    const here = await places(as);
    await run(here, "--delta", "kept", "project", "--", "echo changed > README.md");
    const args = ["run", "--delta", "kept", "--apply", "project", "--", "mkdir output; echo one > output/a"];
    const { code, stderr } = await agentfense(args, here.surroundings);
    expect(code).toBe(123);
    expect(stderr).toContain(`agentfense: 2 changes written back to ${here.cwd}/project, 1 not:\n`);
    expect(stderr).toContain("  refused   /README.md: level read\n");
    expect(placeIn(stderr)).toBe(join(here.cwd, "kept"));
    expect(await readFile(join(here.cwd, "kept/tree/README.md"), "utf8")).toBe("changed\n");
    expect(await readFile(join(here.cwd, "project/output/a"), "utf8")).toBe("one\n");
  });

  test("what is never carried over keeps the temporary delta, and the next run leaves it alone", async () => {
    const here = await places(as);
    const { code, stderr } = await run(
      here,
      "--apply",
      "project",
      "--",
      "mkdir output; mkfifo output/pipe; echo one > output/a",
    );
    expect(code).toBe(123);
    const kept = placeIn(stderr);
    expect(kept.startsWith(`${here.temporary}/`)).toBe(true);
    expect(await readdir(join(kept, "tree/output"))).toEqual(["pipe"]);
    await run(here, "project", "--", "true");
    expect(await readdir(join(kept, "tree/output"))).toEqual(["pipe"]);
  });

  test("a command that failed keeps its own code, and --json tells where the changes are", async () => {
    const here = await places(as);
    const args = ["--apply=always", "--json", "project", "--", "mkfifo pipe; exit 6"];
    const { code, stdout } = await run(here, ...args);
    const answer = JSON.parse(stdout);
    expect({ code, applied: answer.applied }).toMatchObject({
      code: 6,
      applied: [{ outcome: "refused", path: "/pipe" }],
    });
    expect(await readdir(join(answer.delta, "tree"))).toEqual(["pipe"]);
  });
});

const reason = reasonAgainst("root");
describe.skipIf(reason !== undefined)(
  `agentfense run --apply on a disk that is full or read-only${reason ?? ""}`,
  () => {
    test("a full disk: nothing is lost, and apply finishes when there is room again", async () => {
      const here = await places("root");
      const project = await onDisk(here, "project", "size=128k");
      const { code, stderr } = await run(here, "--apply", "project", "--", WORK);
      expect(code).toBe(123);
      expect(stderr).toContain(`agentfense: 3 changes written back to ${project}, 1 not:\n`);
      expect(stderr).toContain("  failed    /output/big: the disk is full\n");
      expect(stderr).not.toContain("thrown away");
      const kept = placeIn(stderr);
      const big = await readFile(join(kept, "tree/output/big"));
      expect(big.length).toBe(300_000);
      expect((await readdir(join(project, "output"))).sort()).toEqual(["small"]);

      execFileSync("mount", ["-o", "remount,size=8m", project]);
      const again = await agentfense(["apply", "--delta", kept], here.surroundings);
      expect(again).toEqual({ code: 0, stdout: "A  /output/big\n1 change applied\n", stderr: "" });
      expect(await readFile(join(project, "output/big"))).toEqual(big);
    });

    test("a read-only directory: everything is kept, also when the disk of the temporary delta is full", async () => {
      const here = await places("root");
      await onDisk(here, "project", "size=1m");
      await onDisk({ ...here, cwd: here.temporary }, ".", "size=256k");
      execFileSync("mount", ["-o", "remount,ro", join(here.cwd, "project")]);
      const { code, stderr } = await run(here, "--apply", "project", "--", `${WORK}; cat /dev/zero > fill; true`);
      expect(code).toBe(123);
      expect(stderr).toMatch(/ {2}failed {4}\/README\.md: its file system is read-only\n/);
      const kept = placeIn(stderr);
      expect(await readFile(join(kept, "tree/README.md"), "utf8")).toBe("changed\n");
      expect((await readdir(join(kept, "tree"))).sort()).toEqual(["README.md", "fill", "output"]);

      execFileSync("mount", ["-o", "remount,rw", join(here.cwd, "project")]);
      expect((await agentfense(["apply", "--delta", kept], here.surroundings)).code).toBe(0);
      expect(await readFile(join(here.cwd, "project/README.md"), "utf8")).toBe("changed\n");
    });

    test("a directory that is gone when the command ends: what was printed and changed is not lost", async () => {
      const here = await places("root");
      const project = join(here.cwd, "project");
      // The command waits for its input, which comes when the directory has gone.
      const command = "touch begun; cat > README.md; echo printed";
      const args = ["run", "--preset", "full-access", "--apply", "--json", "project", "--", command];
      const child = start(args, { ...here.surroundings, holdsInput: true });
      await once(child, "spawn");
      await eventually(async () => {
        const paths = await readdir(here.temporary, { recursive: true });
        return paths.some((path) => path.endsWith("tree/begun"));
      });
      await rename(project, join(here.cwd, "elsewhere"));
      child.stdin?.end("changed\n");
      const [stdout, [code]] = await Promise.all([text(child.stdout!), once(child, "exit")]);
      const answer = JSON.parse(stdout);
      expect({ code, printed: answer.stdout }).toEqual({ code: 123, printed: "printed\n" });
      expect(answer.problem).toContain("project cannot be used");
      expect(await readFile(join(answer.delta, "tree/README.md"), "utf8")).toBe("changed\n");
    });
  },
);

/** Puts a small file system of its own over a directory, with what was in it. */
async function onDisk({ cwd }: Places, name: string, options: string): Promise<string> {
  const [path, aside] = [join(cwd, name), await scratch()];
  execFileSync("cp", ["-a", `${path}/.`, aside]);
  execFileSync("mount", ["-t", "tmpfs", "-o", `${options},mode=755`, "none", path]);
  onTestFinished(() => {
    execFileSync("umount", ["-l", path]);
  });
  execFileSync("cp", ["-a", `${aside}/.`, path]);
  return path;
}
