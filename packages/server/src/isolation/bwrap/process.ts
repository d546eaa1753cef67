import { constants } from "node:os";
import type { BoxProcess, ProcessExit, ShellProcess } from "../backend/backend.ts";
import type { Command } from "./command.ts";
import { type BootClock, childrenOf, signalProcess, withDescendants } from "./host-processes.ts";

/** A command with pipes as the process it is. */
export function boxProcess(command: Command, exit: Promise<ProcessExit>): BoxProcess {
  const { stdin, stdout, stderr } = pipesOf(command);
  return {
    stdin,
    stdout,
    stderr,
    exit,
    signal: async (signalNumber) => command.signal(signalNumber),
    kill: () => command.kill(),
  };
}

/** The streams of a command that was started with pipes. */
function pipesOf(command: Command): {
  stdin: Command["stdin"];
  stdout: NonNullable<Command["stdout"]>;
  stderr: NonNullable<Command["stderr"]>;
} {
  const { stdin, stdout, stderr } = command;
  if (stdout === undefined || stderr === undefined) throw new TypeError("this command has a terminal instead of pipes");
  return { stdin, stdout, stderr };
}

/** A shell in the box, seen and signalled from the host: nothing inside has to cooperate. */
export function boxShell(
  command: Command,
  exit: Promise<ProcessExit>,
  { clock, oomKills }: { clock: BootClock; oomKills: ShellProcess["oomKills"] },
): ShellProcess {
  const { stdin, stdout, stderr } = pipesOf(command);
  const { channel, main: shell } = command;
  if (stdin === undefined || channel === undefined) throw new TypeError("this command is no shell");
  return {
    commands: stdin,
    status: channel,
    stdout,
    stderr,
    exit,
    oomKills,
    pendingOutput: async () => ({ stdout: stdout.waiting, stderr: stderr.waiting }),
    // Starts are known to a tick (10 ms): a background job started just before `sinceMs` may be taken along.
    signalForeground: async (signal, sinceMs) => {
      if (shell === undefined) return 0;
      const since = clock.ticksAt(sinceMs);
      const roots = childrenOf(shell.pid).filter((child) => child.startTicks >= since);
      const number = constants.signals[signal];
      return withDescendants(roots).filter((process) => signalProcess(process, number)).length;
    },
    channels: () => command.channels(),
    signalShell: async (signalNumber) => {
      if (shell !== undefined) signalProcess(shell, signalNumber);
    },
    kill: () => command.kill(),
  };
}
