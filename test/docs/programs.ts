import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { REPOSITORY } from "../../scripts/docs/source.ts";

// The programs that the documents show. Folders say what a program finds around it:
//
//   local   a copy of examples/project as ./project; no server
//   server  the same, and a server at AGENTFENSE_ENDPOINT
//   apart   the repository as working directory, with a network and a /var/lib of its own (needs root)

export const FOLDERS = ["local", "server", "apart"] as const;

export type Folder = (typeof FOLDERS)[number];

const PYTHON_PACKAGE = join(REPOSITORY, "python/src");

/** How a file is run; one of another kind is data that a program of its folder reads. */
const INTERPRETERS: Readonly<Record<string, (file: string) => readonly [string, ...string[]]>> = {
  ".ts": (file) => [process.execPath, file],
  ".sh": (file) => ["bash", "-eumo", "pipefail", file],
  ".py": (file) => ["env", `PYTHONPATH=${PYTHON_PACKAGE}`, join(REPOSITORY, ".cache/python-sdk/bin/python"), file],
};

/** Everything in a folder, by its path in the repository: what runs, what is printed, what is read. */
export function filesOf(folder: Folder) {
  const names = readdirSync(join(REPOSITORY, "examples/docs", folder)).toSorted();
  const paths = names.map((name) => `examples/docs/${folder}/${name}`);
  const programs = paths.filter((path) => extname(path) in INTERPRETERS);
  const outputs = paths.filter((path) => path.endsWith(".out"));
  return { programs, outputs, data: paths.filter((path) => !programs.includes(path) && !outputs.includes(path)) };
}

/** What the program is said to print; undefined when that is not recorded. */
export function recordedOutput(program: string): string | undefined {
  const file = join(REPOSITORY, outputOf(program));
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

export function outputOf(program: string): string {
  return `${program.slice(0, -extname(program).length)}.out`;
}

export interface Outcome {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of `local` or `server` in a directory of its own. */
export async function runBeside(program: string, env: Readonly<Record<string, string>>): Promise<Outcome> {
  const place = mkdtempSync(join(tmpdir(), "agentfense-docs-"));
  try {
    cpSync(join(REPOSITORY, "examples/project"), join(place, "project"), { recursive: true });
    symlinkSync(join(REPOSITORY, "node_modules"), join(place, "node_modules")); // for npx
    return await execute(interpreterOf(program), { cwd: place, env });
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

const OWN_SURROUNDINGS = 'ip link set lo up && mount -t tmpfs tmpfs /var/lib && exec "$@"';

/** Runs a program that uses the ports and directories of a server as they are by default. */
export function runApart(program: string): Promise<Outcome> {
  const namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
  const command = ["bash", "-c", OWN_SURROUNDINGS, "bash", ...interpreterOf(program)];
  return execute(["unshare", ...namespaces, ...command], { cwd: REPOSITORY, env: {} });
}

function interpreterOf(program: string): readonly [string, ...string[]] {
  const interpreter = INTERPRETERS[extname(program)];
  if (interpreter === undefined) throw new Error(`${program} is not a program`);
  return interpreter(join(REPOSITORY, program));
}

function execute(
  [command, ...args]: readonly [string, ...string[]],
  { cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<Outcome> {
  // Nothing of the test's own environment: what a document shows must work without it. Compiled code only saves time.
  const { PATH = "", HOME = "/", NODE_COMPILE_CACHE } = process.env;
  const surroundings = { PATH, HOME, NODE_COMPILE_CACHE, LC_ALL: "C", ...env };
  return new Promise((resolve) => {
    execFile(command, args, { cwd, env: surroundings, timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? "failed"), stdout, stderr });
    });
  });
}

/** Far more than any of them needs. */
const TIMEOUT_MS = 150_000;
