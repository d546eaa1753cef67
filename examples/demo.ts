// The main job, shown: a project with secrets, opened for an agent with the preset agent-safe. Works on a copy and leaves
// nothing behind. Ends with 1 if anything turns out other than announced.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { listChanges } from "@agentfense/server";

const repository = join(import.meta.dirname, "..");
const cli = join(repository, "packages/agentfense/src/cli.ts");

let failures = 0;
const place = await mkdtemp(join(tmpdir(), "agentfense-demo-"));
// An interrupt reaches the mount too, which ends by itself; the next command then fails and we clean up.
process.on("SIGINT", () => say("interrupted"));
try {
  await makeProject(join(place, "project"));
  await mkdir(join(place, "workspace"));
  process.exitCode = await show();
} finally {
  await rm(place, { recursive: true });
}

async function show(): Promise<0 | 1> {
  heading("A project, with secrets in it");
  run("project", "find . -type f | sort", "works");

  heading("What an agent would see of it, for you to check first (struck or 'none': hidden)");
  run(".", "agentfense policy tree --preset agent-safe --all project", "works");

  heading("The project opened for an agent");
  say("$ agentfense mount --preset agent-safe --delta changes project workspace");
  const mount = spawn(
    process.execPath,
    [cli, "mount", "--preset", "agent-safe", "--delta", "changes", "project", "workspace"],
    { cwd: place, stdio: ["ignore", "pipe", "inherit"] },
  );
  try {
    const ready = await firstLine(mount);
    if (ready === undefined) return 1;
    say(ready.replaceAll(place, "…"));

    heading("What the agent can do");
    run("workspace", "ls -la", "works");
    run("workspace", "head -n 3 README.md", "works");
    run("workspace", "cat .env", "fails: No such file or directory");
    run("workspace", "cat secrets/signing.key", "fails: No such file or directory");
    run("workspace", "cat .git/config", "fails: No such file or directory");
    run("workspace", "echo '// backdoor' >> src/tracker.js", "fails: Permission denied");
    run("workspace", "mkdir -p output && echo 'two carriers, no tests' > output/report.txt", "works");
    run("workspace", "cat output/report.txt", "works");
  } finally {
    mount.kill("SIGTERM");
    if (mount.exitCode === null && mount.signalCode === null) await once(mount, "exit");
  }

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

/** Runs a command, shows it with what it printed, and counts it when it does not end as announced. */
function run(folder: string, command: string, expected: "works" | `fails: ${string}`): void {
  say(`$ ${command}`);
  const script = `agentfense() { "${process.execPath}" "${cli}" "$@"; }\n${command}`;
  const result = spawnSync("sh", ["-c", `${script}\n`], {
    cwd: join(place, folder),
    env: { ...process.env, LC_ALL: "C", ...(process.stdout.isTTY ? { FORCE_COLOR: "1" } : {}) },
    encoding: "utf8",
  });
  const output = (result.stdout + result.stderr).replace(/^sh: \d+: /gm, "").replaceAll(place, "…");
  process.stdout.write(output);
  const asAnnounced =
    expected === "works"
      ? result.status === 0
      : result.status !== 0 && output.includes(expected.slice("fails: ".length));
  if (!asAnnounced) {
    failures += 1;
    say(`!! expected: ${expected}; exit code ${result.status}`);
  }
}

/** The line that says the mount is ready; none when it ended instead, after saying why on stderr. */
async function firstLine(child: ChildProcess): Promise<string | undefined> {
  for await (const line of createInterface({ input: child.stdout! })) return line;
  return undefined;
}

function heading(text: string): void {
  process.stdout.write(`\n== ${text}\n`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
