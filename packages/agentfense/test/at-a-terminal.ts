import { execFileSync, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import type { Surroundings } from "./run-cli.ts";

export interface Step {
  /** A regular expression the output must match, after what earlier steps waited for. */
  readonly wait?: string;
  readonly type?: string;
  readonly resize?: readonly [columns: number, rows: number];
  readonly signal?: string;
}

export interface Seen {
  readonly code: number | null;
  readonly output: string;
  readonly restored: boolean;
  readonly missing?: string;
}

export const COLUMNS = 100;
const cli = join(import.meta.dirname, "../src/cli.ts");
const driver = join(import.meta.dirname, "fixtures/at-a-terminal.py");

/** A program as it is started, and by whom: by default who runs this. */
export interface AtTerminal {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string | undefined;
  readonly identity?: Surroundings["identity"];
}

/** Plays a user of the command line. */
export async function atATerminal(
  args: readonly string[],
  { cwd, identity, env: own }: Surroundings,
  steps: readonly Step[],
): Promise<Seen> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, LC_ALL: "C", TERM: "xterm-256color", ...own };
  return await playUser({ argv: [process.execPath, cli, ...args], env, cwd, identity }, steps);
}

/** Plays a user of any program, at a terminal of these columns and 30 rows. */
export async function playUser({ argv, env, cwd, identity }: AtTerminal, steps: readonly Step[]): Promise<Seen> {
  const child = spawn("python3", [driver], { stdio: ["pipe", "pipe", "inherit"] });
  const { uid, gid } = identity ?? { uid: process.getuid!(), gid: process.getgid!() };
  child.stdin.end(JSON.stringify({ argv, env, cwd: cwd ?? tmpdir(), uid, gid, size: [COLUMNS, 30], steps }));
  const seen = (await json(child.stdout)) as Seen;
  if (seen.missing !== undefined) throw new Error(`never saw ${seen.missing} in:\n${seen.output}`);
  return seen;
}

/** Why nobody can play a user here; undefined when somebody can. */
export function reasonAgainstTerminals(): string | undefined {
  try {
    execFileSync("python3", ["--version"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "python3, which plays the user, is not installed";
  }
}
