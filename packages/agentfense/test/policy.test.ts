import { execFileSync } from "node:child_process";
import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { compileRules } from "@agentfense/permission";
import { describe, expect, onTestFinished, test } from "vitest";
import { ContentReader } from "../src/policy/content-reader.ts";
import { readTrackedFiles } from "../src/policy/git-index.ts";
import { rootEntry, tryEntriesOf } from "../src/policy/workspace-view.ts";
import { agentfense, scratch } from "./run-cli.ts";

const RULES = `
- { pattern: "**/*", permission: read }
- { pattern: /output/, permission: write }
- { pattern: /media/, permission: view }
- { pattern: "**/.env*", permission: none, priority: 100 }
- { pattern: "/secrets/**", permission: none }
- { pattern: /secrets/public.key, permission: read }
`;

/** A directory `project` and a file of rules `rules.yaml`, in a new place. */
async function project(): Promise<string> {
  const place = await scratch();
  const files = {
    "project/.env": "TOKEN=1",
    "project/README.md": "hello",
    "project/media/film.mp4": "…",
    "project/output/report.txt": "",
    "project/secrets/private.key": "private",
    "project/secrets/public.key": "public",
    "project/secrets/deep/other.key": "other",
    "rules.yaml": RULES,
  };
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(place, path, ".."), { recursive: true });
    await writeFile(join(place, path), content);
  }
  await symlink("/etc", join(place, "project/link"));
  return place;
}

/** What is random in the keys of these tests; no whole key stands here. */
const KEY = "Zk3vQ9xLm2Tf7Rb1Wc8Yd5Hg0Jn4Ps6AuEiO";

/** A directory of its own with these files. */
async function withFiles(files: Readonly<Record<string, string>>): Promise<string> {
  const top = join(await scratch(), "project");
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(top, path, ".."), { recursive: true });
    await writeFile(join(top, path), content);
  }
  return top;
}

describe("policy tree", () => {
  test("shows what an agent would see, with the level of each path", async () => {
    const cwd = await project();
    expect(await agentfense(["policy", "tree", "--rules", "rules.yaml", "project"], { cwd })).toEqual({
      code: 0,
      stdout: [
        "read  /",
        "read  ├── README.md",
        "read  ├── link -> /etc",
        "view  ├── media/",
        "view  │   └── film.mp4",
        "write ├── output/",
        "write │   └── report.txt",
        "pass  └── secrets/",
        "read      └── public.key",
        "",
      ].join("\n"),
      stderr: "",
    });
  });

  test.each(["tree", "lint"])("%s without a directory means where you are", async (command) => {
    const cwd = await project();
    const named = await agentfense(["policy", command, "--json", "project"], { cwd });
    expect(await agentfense(["policy", command, "--json"], { cwd: join(cwd, "project") })).toEqual(named);
    expect(named.stdout).not.toBe("");
  });

  test("--all shows the hidden entries too, and --depth cuts", async () => {
    const cwd = await project();
    const { stdout } = await agentfense(
      ["policy", "tree", "--rules", "rules.yaml", "--all", "--depth", "1", "project"],
      { cwd },
    );
    expect(stdout.split("\n")).toEqual([
      "read  /",
      "none  ├── .env",
      "read  ├── README.md",
      "read  ├── link -> /etc",
      "view  ├── media/",
      "      │   └── … 1 more, see --depth",
      "write ├── output/",
      "      │   └── … 1 more, see --depth",
      "pass  └── secrets/",
      "          └── … 3 more, see --depth",
      "",
    ]);
  });

  test("--json has one object per path", async () => {
    const cwd = await project();
    const { stdout } = await agentfense(["policy", "tree", "--rules", "rules.yaml", "--all", "--json", "project"], {
      cwd,
    });
    const rows = JSON.parse(stdout) as { path: string }[];
    expect(rows.filter(({ path }) => path.startsWith("/secrets") || path === "/link")).toEqual([
      { path: "/link", type: "symlink", level: "read", rule: 0, visible: true },
      { path: "/secrets", type: "directory", level: "none", rule: 4, visible: true },
      { path: "/secrets/deep", type: "directory", level: "none", rule: 4, visible: false },
      { path: "/secrets/deep/other.key", type: "file", level: "none", rule: 4, visible: false },
      { path: "/secrets/private.key", type: "file", level: "none", rule: 4, visible: false },
      { path: "/secrets/public.key", type: "file", level: "read", rule: 5, visible: true },
    ]);
  });

  test("colours only when asked for", async () => {
    const cwd = await project();
    const args = ["policy", "tree", "--all", "--depth", "1", "project"];
    const coloured = await agentfense(args, { cwd, env: { FORCE_COLOR: "1" } });
    expect(coloured.stdout).toContain("\u001b[9;31m.env\u001b[0m");
    expect((await agentfense(args, { cwd, env: { FORCE_COLOR: "1", NO_COLOR: "1" } })).stdout).not.toContain("\u001b");
  });

  test("a name of any bytes neither moves the cursor nor gets lost", async () => {
    const cwd = await scratch();
    await mkdir(join(cwd, "project"));
    const odd = Buffer.concat([Buffer.from(`${cwd}/project/`), Buffer.from([0x1b, 0x5b, 0x32, 0x4a, 0xff, 0x0a])]);
    await writeFile(odd, "");
    const { stdout } = await agentfense(["policy", "tree", "project"], { cwd });
    expect(stdout).toBe("read  /\nread  └── \\x1b[2J\\xff\\n\n");
    const { stdout: json } = await agentfense(["policy", "tree", "--json", "project"], { cwd });
    expect((JSON.parse(json) as { path: string }[]).at(-1)?.path).toBe("/\u001b[2J\udcff\n");
  });

  test("a reader that stops early is no error", async () => {
    const cwd = await scratch();
    for (let index = 0; index < 2000; index++)
      await mkdir(join(cwd, `project/a-rather-long-name-${index}`), { recursive: true });
    const command = `NO_COLOR=1 "${process.execPath}" "${join(import.meta.dirname, "../src/cli.ts")}" policy tree project | head -n 1`;
    expect(execFileSync("bash", ["-o", "pipefail", "-c", command], { cwd, encoding: "utf8" })).toBe("read  /\n");
  });
});

describe("policy explain", () => {
  test("names the rule that decides and those that lost", async () => {
    const cwd = await project();
    const args = [
      "policy",
      "explain",
      "--rules",
      "rules.yaml",
      "project",
      "/secrets/public.key",
      "secrets/deep/",
      "absent",
    ];
    const { code, stdout } = await agentfense(args, { cwd });
    expect(code).toBe(0);
    expect(stdout.split("\n")).toEqual([
      "/secrets/public.key  read  (a file)",
      "  decides  rule 5: /secrets/public.key read (file, priority 0)",
      expect.stringMatching(/^ {2}loses {4}rule 4: \/secrets\/\*\* none \(glob, priority 0\): /),
      expect.stringMatching(/^ {2}loses {4}rule 0: \*\*\/\* read \(glob, priority 0\): /),
      "",
      "/secrets/deep  none  (a directory is there; an agent does not see it)",
      "  decides  rule 4: /secrets/** none (glob, priority 0)",
      expect.stringMatching(/^ {2}loses {4}rule 0: /),
      "",
      "/absent  read  (nothing is there)",
      "  decides  rule 0: **/* read (glob, priority 0)",
      "",
    ]);
  });

  test("--json adds what is on disk", async () => {
    const cwd = await project();
    const { stdout } = await agentfense(
      ["policy", "explain", "--rules", "rules.yaml", "--json", "project", "secrets"],
      { cwd },
    );
    expect(JSON.parse(stdout)).toEqual([
      expect.objectContaining({ path: "/secrets", level: "none", rule: 4, type: "directory", visible: true }),
    ]);
  });

  test("does not follow a link out of the directory", async () => {
    const cwd = await project();
    const { stdout } = await agentfense(["policy", "explain", "project", "link/passwd"], { cwd });
    expect(stdout).toContain("/link/passwd  read  (nothing is there)");
  });

  test("refuses ..", async () => {
    const cwd = await project();
    const { code, stderr } = await agentfense(["policy", "explain", "project", "src/../.env"], { cwd });
    expect({ code, reason: stderr.split("\n")[0] }).toEqual({
      code: 2,
      reason: "agentfense: a path of the workspace has no ..: src/../.env",
    });
  });
});

describe("files that git tracks and rules hide", () => {
  const files = { ".env": "TOKEN=1", "src/é a.ts": "x", "src/deep/er/b.ts": "y", "secrets/a": "", "secrets/b": "" };
  const tracked = ["/.env", "/secrets/a", "/secrets/b", "/src/deep/er/b.ts", "/src/é a.ts"];

  /** A repository in which all of these are tracked. */
  async function repository(...init: string[]): Promise<string> {
    const top = await withFiles(files);
    for (const args of [
      ["init", "-q", ...init],
      ["add", "-A"],
    ])
      execFileSync("git", args, { cwd: top });
    return top;
  }

  test.each([
    ["version 2", []],
    ["version 3", ["add", "-N", "later"]],
    ["version 4", ["update-index", "--index-version", "4"]],
  ])("are read from an index of %s as git lists them", async (_version, args) => {
    const top = await repository();
    await writeFile(join(top, "later"), "");
    if (args.length > 0) execFileSync("git", args, { cwd: top });
    const listed = execFileSync("git", ["ls-files", "-z"], { cwd: top, encoding: "utf8" }).split("\0").slice(0, -1);
    expect(readTrackedFiles(top)).toEqual(listed.map((path) => `/${path}`));
    expect(readTrackedFiles(top)).toEqual(expect.arrayContaining(tracked));
  });

  test("are read where hashes are longer, and from nothing that is no index", async () => {
    expect(readTrackedFiles(await repository("--object-format=sha256"))).toEqual(tracked);
    expect(readTrackedFiles(await withFiles(files))).toBeUndefined();
    const top = await repository();
    const index = await readFile(join(top, ".git/index"));
    for (const broken of [Buffer.from("DIRC"), index.subarray(0, 200), Buffer.concat([Buffer.from("xxxx"), index])]) {
      await writeFile(join(top, ".git/index"), broken);
      expect(() => readTrackedFiles(top)).toThrow(RangeError);
    }
    const { code, stderr } = await agentfense(["policy", "lint", top]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("not checked: what git tracks") });
  });

  test("are told where an agent can commit or read the history, one line for each rule", async () => {
    const cwd = await repository();
    const { code, stdout } = await agentfense(["policy", "lint", "--preset", "development"], { cwd });
    expect(code).toBe(1);
    const lines = stdout.split("\n").filter((line) => line.includes("tracked-hidden"));
    const end =
      "but git tracks it: its history shows the content, and a commit of all that changed (git add -A) deletes it";
    expect(lines.map((line) => line.replace(/rule \d+/, "rule N"))).toEqual([
      `warning: tracked-hidden: rule N hides /.env, ${end}`,
      `warning: tracked-hidden: rule N hides /secrets/a and 1 more, ${end}`,
    ]);
    // agent-safe hides the history as well.
    expect(await agentfense(["policy", "lint"], { cwd })).toMatchObject({ code: 0 });
    await writeFile(
      join(cwd, "rules.yaml"),
      `[{ pattern: "**/*", permission: read }, { pattern: "/.env", permission: none }]`,
    );
    const reading = await agentfense(["policy", "lint", "--rules", "rules.yaml", "--json"], { cwd });
    expect(JSON.parse(reading.stdout)).toContainEqual({
      kind: "tracked-hidden",
      severity: "warning",
      rule: 1,
      path: "/.env",
      count: 1,
      message: "rule 1 hides /.env, but git tracks it: its history shows the content",
    });
  });
});

describe("policy lint", () => {
  test("is content with agent-safe for the example project", async () => {
    const example = join(import.meta.dirname, "../../../examples/project");
    const { code, stdout } = await agentfense(["policy", "lint", example]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^nothing wrong/) });
  });

  test("ends with 1 when a secret can be read", async () => {
    const cwd = await project();
    const { code, stdout } = await agentfense(["policy", "lint", "--preset", "read-only", "project"], { cwd });
    expect(code).toBe(1);
    for (const path of ["/.env", "/secrets/private.key", "/secrets/deep/other.key"]) expect(stdout).toContain(path);
  });

  test("reports a typo in the place of a rule", async () => {
    const cwd = await project();
    const rules = (await readFile(join(cwd, "rules.yaml"), "utf8")).replace("/secrets/**", "/sercets/**");
    await writeFile(join(cwd, "typo.yaml"), rules);
    const { code, stdout } = await agentfense(["policy", "lint", "--rules", "typo.yaml", "--json", "project"], { cwd });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toContainEqual(
      expect.objectContaining({ kind: "matches-nothing", severity: "warning", rule: 4, pattern: "/sercets/**" }),
    );
  });

  test("finds keys in what can be read by their shapes, with place and kind, and prints none of them", async () => {
    const cwd = await withFiles({
      "src/config.js": `// settings\nexport const id = "AKIA${KEY.toUpperCase().slice(0, 16)}";\n`,
      "notes.txt": `\n\nghp_${KEY}\n`,
      "hidden/notes.txt": `ghp_${KEY}\n`,
      "listed/notes.txt": `ghp_${KEY}\n`,
      "image.bin": `\0ghp_${KEY}\n`,
      "rules.yaml": `
- { pattern: "**/*", permission: read }
- { pattern: /hidden/, permission: none }
- { pattern: /listed/, permission: view }
`,
    });
    await writeFile(join(cwd, "../outside.txt"), `ghp_${KEY}\n`);
    await symlink("../outside.txt", join(cwd, "link.txt"));

    const plain = await agentfense(["policy", "lint", "--rules", "rules.yaml"], { cwd });
    expect(plain).toEqual({
      code: 1,
      stdout: [
        "warning: secret-inside: /notes.txt:3 holds what looks like a secret (GitHub token, ghp_…), and rule 0 gives it the level read",
        "warning: secret-inside: /src/config.js:2 holds what looks like a secret (AWS access key id, AKIA…), and rule 0 gives it the level read",
        "2 found",
        "",
      ].join("\n"),
      stderr: "",
    });
    const json = await agentfense(["policy", "lint", "--rules", "rules.yaml", "--json"], { cwd });
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toEqual([
      expect.objectContaining({ kind: "secret-inside", path: "/notes.txt", line: 3, secret: "GitHub token", count: 1 }),
      expect.objectContaining({ kind: "secret-inside", path: "/src/config.js", line: 2, secret: "AWS access key id" }),
    ]);
    for (const { stdout, stderr } of [plain, json]) {
      expect((stdout + stderr).toLowerCase()).not.toContain(KEY.toLowerCase().slice(0, 4));
    }
  });

  test("searches the beginning of a large file, no dependencies, and says so", async () => {
    const filler = "nothing to see here\n".repeat(15_000);
    const cwd = await withFiles({
      "large.txt": `ghp_${KEY}\n${filler}npm_${KEY}\n`,
      "node_modules/dependency/index.js": `ghp_${KEY}\n`,
    });
    const { code, stdout, stderr } = await agentfense(["policy", "lint", "--json"], { cwd });
    const inside = (JSON.parse(stdout) as { kind: string }[]).filter(({ kind }) => kind === "secret-inside");
    expect(inside).toEqual([expect.objectContaining({ path: "/large.txt", line: 1, secret: "GitHub token" })]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        "agentfense: looked for keys in files, but only the first 256.0 KiB of /large.txt\n" +
        "agentfense: looked for keys in files, but not 1 file of dependencies\n",
    });
  });

  test.each([
    { bytesOfFile: 1024, bytes: 1, files: 100 },
    { bytesOfFile: 1024, bytes: 1_000_000, files: 1 },
  ])("reads no file beyond %j and counts them", async (bounds) => {
    const top = await withFiles({ "a.txt": "first", "b.txt": "second", "c.txt": "third" });
    const { entries } = tryEntriesOf(rootEntry(top, compileRules([]).root));
    const reader = new ContentReader(bounds);
    expect(entries.map(reader.textOf)).toEqual(["first", undefined, undefined]);
    expect(reader.leftOut()).toEqual([expect.stringMatching(/^looked for keys in files, but not 2 files, after /)]);
  });

  test("a file that became a link or a pipe after it was listed is neither followed nor waited for", async () => {
    const top = await withFiles({ "link.txt": "", "pipe.txt": "", "outside/key.txt": `ghp_${KEY}` });
    const { entries } = tryEntriesOf(rootEntry(top, compileRules([]).root));
    for (const name of ["link.txt", "pipe.txt"]) await rm(join(top, name));
    await symlink("outside/key.txt", join(top, "link.txt"));
    execFileSync("mkfifo", [join(top, "pipe.txt")]);
    const reader = new ContentReader();
    expect(entries.filter(({ type }) => type === "file").map(reader.textOf)).toEqual([undefined, undefined]);
    expect(reader.failures).toEqual(["/link.txt (ELOOP)"]);
  });

  test("ends with 1 when a part cannot be looked at", async () => {
    const cwd = await scratch();
    // Deeper than a path can be long, which stops even root; only a shell that goes down step by step gets there.
    const name = "d".repeat(200);
    const dig = `mkdir project && cd -P project && for i in $(seq 25); do mkdir ${name} && cd -P ${name} || exit 1; done`;
    execFileSync("bash", ["-c", dig], { cwd });
    onTestFinished(() => void execFileSync("rm", ["-rf", join(cwd, "project")]));

    const { code, stderr } = await agentfense(["policy", "lint", "project"], { cwd });

    expect(code).toBe(1);
    expect(stderr).toMatch(/^agentfense: not checked: \/d+(\/d+)* \(ENAMETOOLONG\)\n$/);
  });
});
