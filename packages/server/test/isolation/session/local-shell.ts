import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { Socket } from "node:net";
import { constants, tmpdir } from "node:os";
import type { Readable, Writable } from "node:stream";
import { processes } from "@agentfense/fuse";
import type {
  Box,
  ChannelState,
  InterruptSignal,
  ProcessExit,
  ShellCommand,
  ShellProcess,
} from "../../../src/isolation/backend/backend.ts";
import { channelState } from "../../../src/isolation/bwrap/channels.ts";
import type { HostProcess } from "../../../src/isolation/bwrap/host-processes.ts";

/** A box without walls: its shells are plain processes of this host. */
export class LocalBox implements Pick<Box, "openShell" | "shells"> {
  readonly opened: LocalShell[] = [];
  readonly #shells: readonly string[];

  constructor(shells: readonly string[]) {
    this.#shells = shells;
  }

  async shells(): Promise<readonly string[]> {
    return this.#shells;
  }

  async openShell(command: ShellCommand): Promise<LocalShell> {
    const shell = new LocalShell(command);
    this.opened.push(shell);
    return shell;
  }
}

export class LocalShell implements ShellProcess {
  readonly commands: Writable;
  readonly status: Readable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exit: Promise<ProcessExit>;
  readonly #child: ChildProcess;
  readonly #descriptors: { commands: number; stdout: number; stderr: number };
  readonly #channels: ReadonlySet<string>;
  #gone = false;

  constructor({ argv, env, workdir }: ShellCommand) {
    const [commands, status, stdout, stderr] = [newPipe(), newPipe(), newPipe(), newPipe()];
    this.#child = spawn(argv[0], argv.slice(1), {
      cwd: workdir,
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: tmpdir(), LANG: "C.UTF-8", ...env },
      stdio: [commands.readEnd, stdout.writeEnd, stderr.writeEnd, status.writeEnd],
      detached: true,
    });
    this.#channels = new Set([commands.writeEnd, status.readEnd].map((fd) => readlinkSync(`/proc/self/fd/${fd}`)));
    for (const end of [commands.readEnd, stdout.writeEnd, stderr.writeEnd, status.writeEnd]) closeSync(end);
    this.commands = new Socket({ fd: commands.writeEnd, readable: false, writable: true });
    this.status = new Socket({ fd: status.readEnd, readable: true, writable: false });
    this.stdout = new Socket({ fd: stdout.readEnd, readable: true, writable: false });
    this.stderr = new Socket({ fd: stderr.readEnd, readable: true, writable: false });
    this.#descriptors = { commands: commands.writeEnd, stdout: stdout.readEnd, stderr: stderr.readEnd };
    this.exit = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("exit", (code, signal) => {
        this.#gone = true;
        const exitCode = code ?? 128 + constants.signals[signal!];
        resolve({ exitCode, outOfMemory: false });
      });
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  async pendingOutput(): Promise<{ stdout: number; stderr: number }> {
    const owed = (stream: Readable, fd: number) =>
      stream.readableEnded || stream.destroyed ? 0 : processes.bytesWaiting(fd) + stream.readableLength;
    return {
      stdout: owed(this.stdout, this.#descriptors.stdout),
      stderr: owed(this.stderr, this.#descriptors.stderr),
    };
  }

  async signalForeground(signal: InterruptSignal, sinceMs: number): Promise<number> {
    const uptimeMs = 1_000 * Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);
    const sinceTicks = Math.floor((uptimeMs - (performance.now() - sinceMs)) / 10) - 1;
    const targets = childrenOf(this.pid)
      .filter((pid) => startTicks(pid) >= sinceTicks)
      .flatMap((pid) => [pid, ...descendantsOf(pid)])
      .filter(isRunning);
    for (const pid of targets) processes.kill(pid, constants.signals[signal]);
    return targets.length;
  }

  async channels(): Promise<ChannelState> {
    if (this.#gone) return { strangers: 0, bytesRead: undefined, bytesUnread: 0 };
    const others = (): HostProcess[] => descendantsOf(this.pid).map((pid) => ({ pid, startTicks: 0 }));
    const state = await channelState({ pid: this.pid, startTicks: 0 }, others, this.#channels);
    return { ...state, bytesUnread: processes.bytesWaiting(this.#descriptors.commands) + this.commands.writableLength };
  }

  async signalShell(signalNumber: number): Promise<void> {
    if (!this.#gone) processes.kill(this.pid, signalNumber);
  }

  kill(): void {
    processes.kill(-this.pid, constants.signals.SIGKILL);
    this.commands.destroy();
  }
}

function newPipe(): processes.Pipe {
  const pipe = processes.pipe();
  if (typeof pipe === "number") throw new Error(`no pipe: ${pipe}`);
  return pipe;
}

function statFields(pid: number | string): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined; // it is gone
  }
}

function startTicks(pid: number): number {
  return Number(statFields(pid)?.[19] ?? 0);
}

/** Nobody may have waited for it yet. */
export function isRunning(pid: number): boolean {
  const state = stateOf(pid);
  return state !== undefined && state !== "Z";
}

/** As ps has it: "S", "T" for one that was stopped, "Z" for a corpse. */
export function stateOf(pid: number): string | undefined {
  return statFields(pid)?.[0];
}

export function childrenOf(parent: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && statFields(name)?.[1] === String(parent))
    .map(Number);
}

function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}
