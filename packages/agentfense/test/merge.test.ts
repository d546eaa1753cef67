import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { agentfense, scratch, startMount } from "./run-cli.ts";

const TEN = Array.from({ length: 10 }, (_, i) => `${i + 1}\n`).join("");

/** `project/` and two deltas over it, `a` and `b`. */
async function twoDeltas(work: { [name in "a" | "b"]: (view: string) => Promise<void> }) {
  const cwd = await scratch();
  const surroundings = { cwd };
  const [project, view] = [join(cwd, "project"), join(cwd, "view")];
  await mkdir(project);
  await mkdir(view);
  await writeFile(join(project, "list"), TEN);
  await writeFile(join(project, "logo"), "\0");
  for (const name of ["a", "b"] as const) {
    const args = ["--preset", "full-access", "--delta", name, "project", "view"];
    const mount = await startMount(args, surroundings);
    await work[name](view);
    await mount.end("SIGTERM");
  }
  return { cwd, project, surroundings };
}

describe("agentfense merge", () => {
  test("brings two deltas together in their directory, by the rules of their runs, and empties them", async () => {
    const { cwd, project, surroundings } = await twoDeltas({
      async a(view) {
        await writeFile(join(view, "list"), TEN.replace("2\n", "two\n"));
        await mkdir(join(view, ".husky"));
        await writeFile(join(view, ".husky/pre-commit"), "");
      },
      b: async (view) => await writeFile(join(view, "list"), TEN.replace("9\n", "nine\n")),
    });
    const lines = [
      "A! /.husky/  (a; the host may run or trust this unasked)",
      "A! /.husky/pre-commit  (a; the host may run or trust this unasked)",
      "M  /list  (a + b)",
    ];
    const rehearsal = await agentfense(["merge", "a", "b", "--dry-run"], surroundings);
    expect(rehearsal).toEqual({
      code: 0,
      stdout: `${lines.join("\n")}\n3 changes would be merged into ${project}\n`,
      stderr: "",
    });
    expect(await readFile(join(project, "list"), "utf8")).toBe(TEN);
    const merged = await agentfense(["merge", "a", "b", "--into", "project"], surroundings);
    expect(merged).toEqual({ code: 0, stdout: `${lines.join("\n")}\n3 changes merged into project\n`, stderr: "" });
    expect(await readFile(join(project, "list"), "utf8")).toBe(TEN.replace("2\n", "two\n").replace("9\n", "nine\n"));
    expect([await readdir(join(cwd, "a/tree")), await readdir(join(cwd, "b/tree"))]).toEqual([[], []]);
    const again = await agentfense(["merge", "a", "b"], surroundings);
    expect(again).toEqual({ code: 0, stdout: "no changes\n", stderr: "" });
  });

  test("conflicts are a table and exit code 1, and nothing is written before a strategy settles them", async () => {
    const { project, surroundings } = await twoDeltas({
      async a(view) {
        await writeFile(join(view, "list"), TEN.replace("5\n6\n", "five\nsix\n"));
        await writeFile(join(view, "logo"), "\0a");
        await writeFile(join(view, "new"), "new\n");
      },
      async b(view) {
        await writeFile(join(view, "list"), TEN.replace("5\n6\n", "FIVE\nSIX\n"));
        await writeFile(join(view, "logo"), "\0b");
      },
    });
    const stopped = await agentfense(["merge", "a", "b", "--markers"], surroundings);
    expect(stopped).toEqual({
      code: 1,
      stdout: [
        "CONFLICT  PATH   LINES  OURS  THEIRS  SETTLED",
        "text      /list  5-6    a     b       markers",
        "binary    /logo         a     b",
        "",
      ].join("\n"),
      stderr: "agentfense: nothing was written: 1 conflict to settle first\n",
    });
    expect(await readdir(project)).toEqual(["list", "logo"]);
    const { code, stdout } = await agentfense(["merge", "a", "b", "--json"], surroundings);
    const report = JSON.parse(stdout);
    expect({ code, written: report.written }).toEqual({ code: 1, written: false });
    expect(report.conflicts.map(({ kind, path, sides }: Record<string, unknown>) => [kind, path, sides])).toEqual([
      ["text", "/list", ["a", "b"]],
      ["binary", "/logo", ["a", "b"]],
    ]);
    const drivers = ["--driver", "logo=theirs", "--driver", "list=whole", "--driver", "list=text"];
    const marked = await agentfense(["merge", "a", "b", "--markers", ...drivers], surroundings);
    expect(marked.code).toBe(1);
    expect(marked.stdout).toContain(`3 changes merged into ${project}\n`);
    expect(await readFile(join(project, "logo"), "utf8")).toBe("\0b");
    expect(await readFile(join(project, "list"), "utf8")).toContain(
      "4\n<<<<<<< a\nfive\nsix\n=======\nFIVE\nSIX\n>>>>>>> b\n7\n",
    );
  });

  test("what it cannot merge it says before it touches anything", async () => {
    const { surroundings } = await twoDeltas({
      a: async (view) => await writeFile(join(view, "new"), "a"),
      b: async (view) => await writeFile(join(view, "new"), "b"),
    });
    for (const [args, sentence] of [
      [[], "merge takes DELTA…, not nothing"],
      [["a", "a"], "the delta a is given twice"],
      [["project"], "the codebase directory, for the delta does not tell"],
      [["a", "--driver", "x=y"], "--driver is PATTERN=NAME"],
      [["a", "--strategy", "mine"], "--strategy is one of ours, theirs, union"],
      [["a", "--into", "a/tree"], "must not be inside one another"],
    ] as const) {
      const { code, stdout, stderr } = await agentfense(["merge", ...args], surroundings);
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: "" });
      expect(stderr).toContain(sentence);
    }
  });
});
