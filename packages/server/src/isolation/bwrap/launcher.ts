import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { processes } from "@agentfense/fuse";
import type { LogLine } from "../mount/host.ts";
import type { HostPrograms } from "./programs.ts";

const SCRIPT = fileURLToPath(new URL("launcher.sh", import.meta.url));
const SIGKILL = 9;
/** How long killed processes may need to let go of what they are opening. */
const LET_GO_MS = 50;

/** One command; see launcher.sh for the meaning of each field. */
export interface JobLine {
  readonly user: { readonly uid: number; readonly gid: number } | undefined;
  readonly status: number;
  readonly stdin: number | "none" | Terminal;
  readonly stdout: number | Terminal;
  readonly stderr: number | Terminal;
  readonly channel: number | undefined;
  readonly seccomp: number;
  readonly options: number;
  readonly command: number;
  readonly block: number | undefined;
  readonly files: readonly number[];
}

/** The line that makes a nest; see launcher.sh. */
export interface NestLine {
  readonly commands: number;
  readonly status: number;
  /** The programs that make a network namespace of its own; without them it stays in the host's. */
  readonly network: { readonly unshare: string; readonly ip: string } | undefined;
}

/** The number of a terminal: N of /dev/pts/N. */
export interface Terminal {
  readonly terminal: number;
}

/** Descriptors inside the job, as launcher.sh places them. */
export const JobDescriptor = { options: 4, seccomp: 5, status: 6, block: 7, firstFile: 10 } as const;

/**
 * The process that starts the nests of a backend, and through them every bwrap. It is small, so that its forks are cheap,
 * and it holds nothing of the server's: what a job needs is opened through /proc/SERVER/fd. When it dies all that it
 * started is ended; then a new one takes its place at the next nest.
 */
export class Launcher {
  readonly #programs: HostPrograms;
  readonly #marker: string;
  readonly #log: (line: LogLine) => void;
  readonly #onLost: (generation: number) => void;
  #process: ChildProcess | undefined;
  #generation = 0;
  #closed = false;

  constructor(options: {
    programs: HostPrograms;
    marker: string;
    log: (line: LogLine) => void;
    /** Called when it died, once none of its jobs can touch the server's descriptors any more. */
    onLost: (generation: number) => void;
  }) {
    this.#programs = options.programs;
    this.#marker = options.marker;
    this.#log = options.log;
    this.#onLost = options.onLost;
  }

  /** For tests and for whoever looks at the process table. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Starting early keeps the fork of the server small and out of the first command's way. */
  start(): void {
    if (this.#process !== undefined || this.#closed) return;
    const { bash, bwrap, setpriv } = this.#programs;
    const child = spawn(
      bash,
      ["--norc", "--noprofile", SCRIPT, String(process.pid), bwrap, setpriv ?? "-", this.#marker],
      {
        cwd: "/",
        env: { PATH: "/usr/bin:/bin" },
        detached: true, // a session and process group of its own: no signal of the server's terminal reaches a job
        stdio: ["pipe", "ignore", "pipe"],
      },
    );
    this.#process = child;
    this.#generation += 1;
    child.on("error", (error) => this.#lost(child, error.message));
    child.on("exit", (code, signal) => this.#lost(child, signal ?? `exit code ${code}`));
    child.stdin.on("error", () => {}); // its exit tells
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.split("\n").filter((part) => part !== "")) this.#error(`launcher: ${line}`);
    });
    child.unref();
    for (const stream of [child.stdin, child.stderr]) (stream as unknown as { unref?(): void }).unref?.();
  }

  /** Tells which of the launchers in a row makes the nest. */
  makeNest({ commands, status, network }: NestLine): number {
    this.start();
    const fields = ["nest", commands, status, network?.unshare ?? "-", network?.ip ?? "-"];
    this.#process?.stdin?.write(`${fields.join(" ")}\n`);
    return this.#generation;
  }

  /** Whether the launcher of this generation still lives, as far as is known. */
  isAlive(generation: number): boolean {
    return this.#process !== undefined && generation === this.#generation;
  }

  /** Ends the launcher; no job may be running. */
  async close(): Promise<void> {
    this.#closed = true;
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.ref();
    child.stdin?.end("quit\n");
    await gone;
  }

  #lost(child: ChildProcess, reason: string): void {
    if (this.#process !== child) return;
    this.#process = undefined;
    const generation = this.#generation;
    if (this.#closed) return;
    this.#error(`the launcher died (${reason}); the commands it ran end with it`);
    if (child.pid !== undefined) processes.kill(-child.pid, SIGKILL);
    setTimeout(() => this.#onLost(generation), LET_GO_MS);
  }

  #error(message: string): void {
    this.#log({ level: "error", message });
  }
}

/** A job as a line for a nest. */
export function jobLine(job: JobLine): string {
  const fields = [
    job.user?.uid ?? "-",
    job.user?.gid ?? "-",
    job.status,
    place(job.stdin),
    place(job.stdout),
    place(job.stderr),
    job.channel ?? "-",
    job.seccomp,
    job.options,
    job.command,
    job.block ?? "-",
    job.files.length,
    ...job.files,
  ];
  return `${fields.join(" ")}\n`;
}

function place(stream: number | "none" | Terminal): string | number {
  if (stream === "none") return "-";
  return typeof stream === "number" ? stream : `t${stream.terminal}`;
}
