import { setTimeout as delay } from "node:timers/promises";
import type { ShellCommand, ShellProcess, TerminalCommand, TerminalProcess, TerminalSize } from "../backend/backend.ts";
import type { ProcessHome } from "./container.ts";
import { type DockerDaemon, type Exec, isStatus } from "./daemon.ts";
import { ContainerProcess } from "./process.ts";
import { SHELL_SCRIPT, TERMINAL_SCRIPT } from "./scripts.ts";

/**
 * The status that says how an interrupted command ended comes behind its output, which nobody may be reading: more than
 * this the daemon and the kernel do not hold for one that has ended.
 */
const LAST_OUTPUT_BYTES = 16 * 1024 ** 2;

/**
 * The shell of a session. The daemon has no channel but stdin, stdout and stderr, so what the shell writes to descriptor 3
 * travels line by line as frames in both outputs (see scripts.ts) and is taken out of them here. A status is text without
 * the characters NUL and 0x1e.
 */
export async function openContainerShell(
  home: ProcessHome,
  { argv, env, workdir }: ShellCommand,
  signal: AbortSignal | undefined,
): Promise<ShellProcess> {
  const command = { script: SHELL_SCRIPT, argv, env, workdir, stdin: true };
  const process = await ContainerProcess.start(home, command, { signal, isShell: true });
  const pid = await process.shellPid;
  const { helper } = home; // that of the container as it is now
  const { stdout, stderr } = process;
  return {
    commands: process.stdin!,
    status: process.status!,
    stdout,
    stderr,
    exit: process.exit,
    // A status is handed over only when everything that was written before it is here: what is owed is in our buffers.
    pendingOutput: async () => ({ stdout: stdout.readableLength, stderr: stderr.readableLength }),
    signalForeground: async (interrupt, sinceMs) => {
      const count = await helper.signalChildren(interrupt, pid, sinceMs);
      process.outputs.grant(LAST_OUTPUT_BYTES);
      return count;
    },
    channels: () => process.channels(pid),
    signalShell: async (signalNumber) => {
      await helper.signal(signalNumber, pid);
      process.outputs.grant(LAST_OUTPUT_BYTES);
    },
    kill: () => process.kill(),
  };
}

const RESIZE_ATTEMPTS = 50;
const RESIZE_PAUSE_MS = 20;

/** A command on a terminal the daemon made. Both outputs are one stream. */
export async function openContainerTerminal(
  home: ProcessHome,
  { argv, env, workdir, size }: TerminalCommand,
  signal: AbortSignal | undefined,
): Promise<TerminalProcess> {
  let resize: (size: TerminalSize) => Promise<void> = async () => {};
  const prepareTerminal = async (exec: Exec) => {
    resize = (newSize) => resizeExec(home.daemon, exec.id, newSize);
    await resize(size);
  };
  const command = { script: TERMINAL_SCRIPT, argv, env, workdir, stdin: true };
  const process = await ContainerProcess.start(home, command, { signal, prepareTerminal });
  return {
    input: process.stdin!,
    output: process.stderr,
    exit: process.exit,
    resize: async (newSize) => {
      if (!process.isOver) await resize(newSize);
    },
    signal: (signalNumber) => process.signal(signalNumber),
    kill: () => process.kill(),
  };
}

/** The daemon refuses for a moment after it said that the process runs. */
async function resizeExec(daemon: DockerDaemon, execId: string, size: TerminalSize): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await daemon.post(`/exec/${execId}/resize`, { query: { h: String(size.rows), w: String(size.columns) } });
      return;
    } catch (error) {
      if (isStatus(error, 404, 409)) return; // it has ended
      if (!isStatus(error, 500) || attempt === RESIZE_ATTEMPTS) throw error;
      await delay(RESIZE_PAUSE_MS);
    }
  }
}
