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

const cli = join(import.meta.dirname, "../src/cli.ts");
const driver = join(import.meta.dirname, "fixtures/at-a-terminal.py");

/** Plays a user at a terminal of 100 × 30. */
export async function atATerminal(
  args: readonly string[],
  { cwd, identity, env: own }: Surroundings,
  steps: readonly Step[],
): Promise<Seen> {
  const child = spawn("python3", [driver], { stdio: ["pipe", "pipe", "inherit"] });
  const env = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    LC_ALL: "C",
    TERM: "xterm-256color",
    ...own,
  };
  const argv = [process.execPath, cli, ...args];
  child.stdin.end(
    JSON.stringify({
      argv,
      env,
      cwd: cwd ?? tmpdir(),
      ...(identity ?? { uid: process.getuid!(), gid: process.getgid!() }),
      size: [100, 30],
      steps,
    }),
  );
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
