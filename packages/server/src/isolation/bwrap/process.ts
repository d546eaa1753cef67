import type { BoxProcess, ProcessExit } from "../backend/backend.ts";
import type { Command } from "./command.ts";

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
export function pipesOf(command: Command): {
  stdin: Command["stdin"];
  stdout: NonNullable<Command["stdout"]>;
  stderr: NonNullable<Command["stderr"]>;
} {
  const { stdin, stdout, stderr } = command;
  if (stdout === undefined || stderr === undefined) throw new TypeError("this command has a terminal instead of pipes");
  return { stdin, stdout, stderr };
}
