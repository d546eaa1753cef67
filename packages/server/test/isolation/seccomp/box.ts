import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seccompFilter } from "../../../src/isolation/seccomp/filter.ts";
import type { Architecture } from "../../../src/isolation/seccomp/numbers.ts";

export interface Outcome {
  /** The exit code; 128 and the signal's number where a signal ended the command. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const repository = join(import.meta.dirname, "../../../../..");

const BWRAP = [
  ...["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"],
  ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"],
  ...["--ro-bind", repository, repository, "--chdir", "/tmp"], // it may be a clone in /tmp
  ...["--clearenv", "--setenv", "HOME", "/tmp", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"],
  ...["--setenv", "LC_ALL", "C.UTF-8"],
];

/** A real bwrap with the real filter, and all of this machine read-only inside. */
export class Box implements Disposable {
  readonly #place = mkdtempSync(join(tmpdir(), "agentfense-seccomp-"));

  constructor(architecture: Architecture) {
    writeFileSync(join(this.#place, "filter"), seccompFilter(architecture));
  }

  /** Files named here are given to the command, read-only, under /tmp. */
  run(script: string, files: Readonly<Record<string, string>> = {}): Promise<Outcome> {
    const binds = Object.entries(files).flatMap(([name, content]) => {
      writeFileSync(join(this.#place, name), content);
      return ["--ro-bind", join(this.#place, name), join("/tmp", name)];
    });
    const bwrap = [...BWRAP, ...binds, "--seccomp", "10", "bash", "-c", script];
    const command = ["-c", 'filter=$1; shift; exec "$@" 10<"$filter"', "bash", join(this.#place, "filter"), ...bwrap];
    return new Promise((resolve) => {
      execFile("bash", command, { timeout: 90_000 }, (error, stdout, stderr) => {
        const code = typeof error?.code === "number" ? error.code : error === null ? 0 : -1;
        resolve({ code, stdout, stderr });
      });
    });
  }

  [Symbol.dispose](): void {
    rmSync(this.#place, { recursive: true });
  }
}

/** Why a box cannot be made here; empty when it can. */
export function reasonAgainstBox(): string {
  if (process.arch !== "x64" && process.arch !== "arm64") return ` (skipped: no filter for ${process.arch})`;
  try {
    execFileSync(BWRAP[0]!, [...BWRAP.slice(1), "true"], { stdio: "pipe" });
    return "";
  } catch (error) {
    return ` (skipped: bwrap does not work here: ${error instanceof Error ? error.message.split("\n")[1] : error})`;
  }
}

/** Why a test cannot run without these programs; empty when they are there. */
export function reasonWithout(programs: readonly string[]): string {
  const missing = programs.filter((program) => {
    try {
      execFileSync("sh", ["-c", `PATH=/usr/local/bin:/usr/bin:/bin command -v ${program}`], { stdio: "pipe" });
      return false;
    } catch {
      return true;
    }
  });
  return missing.length === 0 ? "" : ` (skipped: not installed: ${missing.join(", ")})`;
}
