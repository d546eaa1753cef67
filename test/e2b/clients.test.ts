import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "e2b";
import { Sandbox as Sandbox230 } from "e2b-2.30";
import { Sandbox as Sandbox250 } from "e2b-2.50";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GuardedServer } from "../support/owners.ts";
import { CLI } from "../support/server.ts";

// Clients of E2B of several ages, its command line, and programs that others published: as they are, with three variables.

const packages = join(import.meta.dirname, "node_modules");
const cache = join(import.meta.dirname, "../../.cache");

let guarded: GuardedServer;
let env: Record<string, string>;
let home: string;

beforeAll(async () => {
  guarded = await GuardedServer.start();
  home = mkdtempSync(join(tmpdir(), "agentfense-e2b-clients-"));
  const base = `${guarded.server.http}/e2b`;
  env = {
    ...{ PATH: `${join(process.execPath, "..")}:${process.env.PATH}`, HOME: home, TERM: "xterm" },
    ...{ NO_PROXY: "127.0.0.1,localhost", PYTHONDONTWRITEBYTECODE: "1" },
    ...{ E2B_API_URL: base, E2B_SANDBOX_URL: base, E2B_API_KEY: await shortKey() },
  };
});
afterAll(async () => {
  await guarded?.[Symbol.asyncDispose]();
  if (home !== undefined) rmSync(home, { recursive: true, force: true });
});

/** In the form that older clients ask for. */
async function shortKey(): Promise<string> {
  const asAdmin = { AGENTFENSE_ENDPOINT: guarded.server.grpc, AGENTFENSE_API_KEY: guarded.admin.key };
  const { output } = await ended(process.execPath, [CLI, "key", "create", "--owner", "alice", "--e2b"], asAdmin);
  return /^e2b_[0-9a-f]{96}$/m.exec(output)![0];
}

/** What a program printed, and how it ended. */
async function ended(program: string, args: readonly string[], more: Record<string, string> = {}, input = "") {
  return await new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    const child = spawn(program, args, { env: { PATH: process.env.PATH, ...env, ...more }, cwd: home ?? "/" });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => (output += data.toString()));
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
    child.stdin.end(input);
  });
}

const connection = () => ({ apiKey: env.E2B_API_KEY!, apiUrl: env.E2B_API_URL!, sandboxUrl: env.E2B_SANDBOX_URL! });

test.each([
  ["2.30", Sandbox230],
  ["2.50", Sandbox250],
])("the client %s does what programs do", async (_version, given) => {
  const Older = given as unknown as typeof Sandbox;
  const older = await Older.create({ ...connection(), metadata: { old: "yes" }, envs: { A: "1" } });
  expect((await older.commands.run("echo $HOME $A")).stdout).toBe("/home/user 1\n");
  await expect(older.commands.run("exit 3")).rejects.toMatchObject({ exitCode: 3 });
  await older.files.write("dir/a.txt", "old");
  expect(await older.files.read("dir/a.txt")).toBe("old");
  expect((await older.files.list("dir")).map(({ path }) => path)).toEqual(["/home/user/dir/a.txt"]);
  expect([await older.files.exists("dir/a.txt"), await older.files.exists("no")]).toEqual([true, false]);
  await older.files.rename("dir/a.txt", "dir/b.txt");
  const handle = await older.commands.run("cat", { background: true, stdin: true });
  await older.commands.sendStdin(handle.pid, "in\n");
  expect((await older.commands.list()).map(({ pid }) => pid)).toEqual([handle.pid]);
  expect(await older.commands.kill(handle.pid)).toBe(true);
  expect(await (await fetch(await older.downloadUrl("dir/b.txt"))).text()).toBe("old");
  expect((await Older.connect(older.sandboxId, connection())).sandboxId).toBe(older.sandboxId);
  const listed = await Older.list({ ...connection(), query: { metadata: { old: "yes" } } }).nextItems();
  expect(listed.map(({ sandboxId }) => sandboxId)).toEqual([older.sandboxId]);
  await older.setTimeout(60_000);
  expect((await older.getInfo()).metadata).toEqual({ old: "yes" });
  expect(await older.kill()).toBe(true);
  expect(await older.isRunning()).toBe(false);
});

const STEPS = [
  ...[
    "create",
    "run",
    "exit",
    "background",
    "kill",
    "timeout",
    "output",
    "files",
    "formats",
    "lost",
    "refused",
    "watch",
  ],
  ...["terminal", "info", "list", "url", "pause", "gone", "key"],
];

test.each([
  ["2.63", "python-e2b", "sync"],
  ["2.63", "python-e2b", "async"],
  ["2.49", "python-e2b-2.49", "sync"],
  ["2.49", "python-e2b-2.49", "async"],
  ["2.20", "python-e2b-2.20", "sync"],
  ["2.20", "python-e2b-2.20", "async"],
])("the client for Python %s does what programs do (%s, %s)", async (_version, place, face) => {
  const { output } = await ended(join(cache, place, "bin/python"), [join(import.meta.dirname, "program.py"), face]);
  // The oldest logs refusals to its standard error.
  expect(output.replaceAll(/^Response \d+\n/gm, "")).toBe(`${STEPS.join("\n")}\n`);
});

describe("the command line e2b", () => {
  const e2b = (args: readonly string[], input?: string) =>
    ended(process.execPath, [join(packages, "@e2b/cli/dist/index.js"), ...args], {}, input);

  test("makes, lists, shows, uses, holds and ends sandboxes", async () => {
    const made = await e2b(["sandbox", "create", "base", "--detach", "--timeout", "600"]);
    const id = /sb_[0-9a-f]{32}/.exec(made.output)?.[0];
    expect([made.code, id], made.output).toEqual([0, expect.any(String)]);
    const all = await Promise.all(
      [
        ["sandbox", "list", "-f", "json"],
        ["sandbox", "info", id!, "-f", "json"],
        ["sandbox", "exec", id!, "echo in $HOME; exit 7"],
        ["sandbox", "exec", "-u", "root", "-c", "/tmp", "-e", "A=b", id!, "echo $A $PWD"],
        ["sandbox", "metrics", id!],
        ["sandbox", "logs", id!],
        ["template", "list"],
      ].map((args) => e2b(args)),
    );
    const [list, info, exec, asRoot, metrics, logs, templates] = all.map(({ output }) => output);
    expect((JSON.parse(list!) as { sandboxId: string }[]).map(({ sandboxId }) => sandboxId)).toContain(id);
    expect(JSON.parse(info!)).toMatchObject({ sandboxId: id, state: "running", templateId: "base" });
    expect([exec, all[2]!.code]).toEqual([expect.stringContaining("in /home/user\n"), 7]);
    expect(asRoot).toContain("b /tmp\n");
    expect(metrics).toMatch(/CPU.*Memory.*Disk/s);
    expect(logs).toContain("sandbox created");
    expect(templates).toContain("code-interpreter-v1");
    expect((await e2b(["sandbox", "pause", id!])).output).toContain("has been paused");
    expect((await e2b(["sandbox", "list", "-s", "paused", "-f", "json"])).output).toContain(id);
    expect((await e2b(["sandbox", "resume", id!])).output).toContain("has been resumed");
    expect((await e2b(["sandbox", "kill", id!])).output).toContain("has been killed");
    expect((await e2b(["sandbox", "kill", id!])).output).toContain("wasn't found");
  });

  test("has a terminal in a sandbox, which ends with it", async () => {
    const sandbox = await Sandbox.create(connection());
    const line = [process.execPath, join(packages, "@e2b/cli/dist/index.js"), "sandbox", "connect", sandbox.sandboxId];
    const { output } = await ended("script", ["-qec", line.join(" "), "/dev/null"], {}, "echo $((6 * 7)) $PWD\nexit\n");
    expect(output).toContain("42 /home/user");
    await sandbox.kill();
  });
});

test("before.ts, which is E2B's, and after.ts, which is ours, do the same on one server", async () => {
  const programs = join(import.meta.dirname, "programs");
  const before = await ended(process.execPath, [join(programs, "before.ts")]);
  const ours = { AGENTFENSE_ENDPOINT: guarded.server.grpc, AGENTFENSE_API_KEY: guarded.alice.key };
  const after = await ended(process.execPath, [join(programs, "after.ts")], ours);
  expect(before).toEqual({ code: 0, output: "45\nsum.py\n\n" });
  expect(after).toEqual({ code: 0, output: `${before.output}[ '/src', '/src/sum.py' ]\n` });
});

describe("programs that others published, unchanged", () => {
  /** The first block of code in a document that has a word in it. */
  function blockOf(document: string, language: string, word: string): string {
    const blocks = [...document.matchAll(new RegExp(`\\n\`\`\`${language}\\n([\\s\\S]*?)\\n\`\`\``, "g"))].map(
      ([, code]) => code!,
    );
    const found = blocks.find((code) => code.includes(word));
    if (found === undefined) throw new Error(`no ${language} with ${word}`);
    return found;
  }

  test("the first program of the README of npm", async () => {
    symlinkSync(packages, join(home, "node_modules"));
    const readme = readFileSync(join(packages, "e2b/README.md"), "utf8");
    writeFileSync(join(home, "quickstart.mts"), blockOf(readme, "ts", "commands.run"));
    expect(await ended(process.execPath, ["quickstart.mts"])).toEqual({ code: 0, output: "Hello from E2B!\n\n" });
  });

  test("the first program of the README of PyPI", async () => {
    const python = join(cache, "python-e2b/bin/python");
    const about = await ended(python, ["-c", "import importlib.metadata as m; print(m.metadata('e2b').get_payload())"]);
    writeFileSync(join(home, "quickstart.py"), blockOf(about.output, "(?:py|python)", "commands.run"));
    const { code, output } = await ended(python, ["quickstart.py"]);
    expect([code, output]).toEqual([0, expect.stringContaining("Hello from E2B!")]);
  });

  test("ComputeSDK with its provider for E2B", async () => {
    const program = `
      import { e2b } from "@computesdk/e2b";
      const sandbox = await e2b({ apiKey: process.env.E2B_API_KEY }).sandbox.create();
      const { stdout, exitCode } = await sandbox.runCommand("python3 - <<'PY'\\nprint(sum(range(10)))\\nPY");
      await sandbox.filesystem.writeFile("/home/user/a.txt", "written");
      console.log(stdout.trim(), exitCode, await sandbox.filesystem.readFile("/home/user/a.txt"));
      console.log((await sandbox.filesystem.readdir("/home/user")).map(({ name }) => name).join());
      await sandbox.destroy();`;
    writeFileSync(join(home, "compute.mjs"), program);
    expect(await ended(process.execPath, ["compute.mjs"])).toEqual({ code: 0, output: "45 0 written\na.txt\n" });
  });
});
