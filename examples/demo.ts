// The main job, shown: a project with secrets, opened for an agent with the preset agent-safe. Works on a copy and leaves
// nothing behind. Ends with 1 if anything turns out other than announced.

import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getPreset } from "@agentfense/permission";
import { type BoxedWorkspace, listChanges, openIsolation } from "@agentfense/server/isolation";

const repository = join(import.meta.dirname, "..");
const cli = join(repository, "packages/agentfense/src/cli.ts");

let failures = 0;
const place = await mkdtemp(join(tmpdir(), "agentfense-demo-"));
// The command that runs ends with it; the next one fails and we clean up.
process.on("SIGINT", () => say("interrupted"));
try {
  await makeProject(join(place, "project"));
  process.exitCode = await show();
} finally {
  await rm(place, { recursive: true });
}

async function show(): Promise<0 | 1> {
  heading("A project, with secrets in it");
  run("project", "find . -type f | sort", "works");

  heading("What an agent would see of it, for you to check first (struck or 'none': hidden)");
  run(".", "agentfense policy tree --preset agent-safe --all project", "works");

  heading("What an agent can do, in a sandbox of its own");
  await inSandbox(async (sandbox) => {
    await runInside(sandbox, "whoami; pwd; ls -A", "works");
    await runInside(sandbox, "head -n 3 README.md", "works");
    await runInside(sandbox, "cat .env", "fails: No such file or directory");
    await runInside(sandbox, "cat secrets/signing.key", "fails: No such file or directory");
    await runInside(sandbox, "cat .git/config", "fails: No such file or directory");
    await runInside(sandbox, "echo '// backdoor' >> src/tracker.js", "fails: Permission denied");
    await runInside(sandbox, "echo > /dev/tcp/192.0.2.1/443", "fails: Network is unreachable");
    await runInside(sandbox, "mkdir -p output && echo 'two carriers, no tests' > output/report.txt", "works");
    await runInside(sandbox, "cat output/report.txt", "works");
  });

  heading("What it changed");
  for await (const change of listChanges({ delta: join(place, "changes"), lowers: [join(place, "project")] })) {
    say(`${change.kind.padEnd(9)} ${change.path}${change.type === "directory" ? "/" : ` (${change.size} bytes)`}`);
  }
  heading("The project itself is as it was");
  run("project", "ls output", "fails: No such file or directory");
  return failures === 0 ? 0 : 1;
}

/** The example, with the repository data that a checkout of it would have. */
async function makeProject(project: string): Promise<void> {
  await cp(join(import.meta.dirname, "project"), project, { recursive: true });
  await mkdir(join(project, ".git"));
  await writeFile(join(project, ".git/HEAD"), "ref: refs/heads/main\n");
  await writeFile(
    join(project, ".git/config"),
    '[remote "origin"]\n\turl = https://made-up-token@git.example/parcel-tracker.git\n',
  );
}

type Expected = "works" | `fails: ${string}`;

async function inSandbox(work: (sandbox: BoxedWorkspace) => Promise<void>): Promise<void> {
  await using isolation = await openIsolation();
  const rules = getPreset("agent-safe");
  await using sandbox = await isolation.create({
    runtime: "bwrap",
    workspaces: [{ lowers: [join(place, "project")], delta: join(place, "changes"), rules }],
  });
  await sandbox.start();
  await work(sandbox);
}

async function runInside(sandbox: BoxedWorkspace, command: string, expected: Expected): Promise<void> {
  say(`$ ${command}`);
  const { exitCode, stdout, stderr } = await sandbox.exec({ command });
  judge(exitCode, stdout.toString() + stderr.toString().replace(/^\S*bash: line \d+: /gm, ""), expected);
}

/** Runs a command here, as you would. */
function run(folder: string, command: string, expected: Expected): void {
  say(`$ ${command}`);
  const script = `agentfense() { "${process.execPath}" "${cli}" "$@"; }\n${command}`;
  const result = spawnSync("sh", ["-c", `${script}\n`], {
    cwd: join(place, folder),
    env: { ...process.env, LC_ALL: "C", ...(process.stdout.isTTY ? { FORCE_COLOR: "1" } : {}) },
    encoding: "utf8",
  });
  judge(result.status, (result.stdout + result.stderr).replace(/^sh: \d+: /gm, ""), expected);
}

/** Shows what a command printed, and counts it when it did not end as announced. */
function judge(exitCode: number | null, text: string, expected: Expected): void {
  const output = text.replaceAll(place, "…");
  process.stdout.write(output);
  const asAnnounced =
    expected === "works" ? exitCode === 0 : exitCode !== 0 && output.includes(expected.slice("fails: ".length));
  if (!asAnnounced) {
    failures += 1;
    say(`!! expected: ${expected}; exit code ${exitCode}`);
  }
}

function heading(text: string): void {
  process.stdout.write(`\n== ${text}\n`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
