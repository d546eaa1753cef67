import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { eventually as untilTrue } from "../../../../../test/support/eventually.ts";
import type { LimitGroup } from "../../../src/isolation/limits/limits.ts";

/** A name that no other test, and no server on this machine, has. */
export function freshInstance(): string {
  return `test${randomBytes(6).toString("hex")}`;
}

/** Enters the groups as a launcher would, then becomes the shell that runs the script. */
const ENTER = 'for entrance; do echo 0 > "$entrance" || exit 99; done; exec /bin/sh -c "$SCRIPT"';

export interface Member {
  readonly process: ChildProcess;
  /** How it ended: an exit code or the name of a signal. */
  readonly end: Promise<number | NodeJS.Signals>;
  readonly output: Promise<string>;
}

/** Runs a shell script inside a group. */
export function runInside(group: Pick<LimitGroup, "entrances">, script: string): Member {
  const child = spawn("/bin/sh", ["-c", ENTER, "sh", ...group.entrances], {
    env: { PATH: "/usr/bin:/bin", SCRIPT: script },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  const end = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  return { process: child, end, output: once(child, "close").then(() => Buffer.concat(chunks).toString()) };
}

/** Waits until something holds, unless it hangs. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  await untilTrue(async () => {
    if (!(await holds())) throw new Error(`it never happened: ${what}`);
  });
}

/** Waits until so many processes are in every directory of the group. */
export async function entered(group: Pick<LimitGroup, "entrances">, count: number): Promise<void> {
  const present = (entrance: string) => readFileSync(entrance, "utf8").split("\n").length - 1;
  await eventually(`${count} members`, () => group.entrances.every((entrance) => present(entrance) >= count));
}

/** Every directory of the control group file systems whose own name starts like this. */
export function groupsNamed(prefix: string, directory = "/sys/fs/cgroup"): string[] {
  const entries = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return entries.flatMap((entry) => {
    const path = `${directory}/${entry.name}`;
    try {
      return [...(basename(path).startsWith(prefix) ? [path] : []), ...groupsNamed(prefix, path)];
    } catch {
      return []; // removed by somebody else while we looked
    }
  });
}

/** Why real control groups cannot be tested on this machine; undefined when they can. */
export function reasonAgainstControlGroups(): string | undefined {
  if (process.getuid?.() !== 0) return "making control groups needs root";
  return undefined;
}
