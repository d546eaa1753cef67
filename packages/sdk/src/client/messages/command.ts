import type { ExecOutput, ExecRequestSchema, ExecResult } from "@agentfense/protocol/sandbox";
import { ExecOutput_OutputType as OutputType } from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type MembersOf, requireKnownMembers } from "../../model/known-members.ts";
import type { Command, CommandOptions, RunOptions } from "../../model/options.ts";
import type { CommandEnd, CommandEvent, RunResult } from "../../model/records.ts";
import { durationOf, invalid, msOf, numberOf } from "./values.ts";

/** Those that the callers of `execMessage` deal with themselves are among them. */
const RUNNING: MembersOf<RunOptions> = {
  ...{ timeoutMs: true, env: true, workdir: true, stdin: true, signal: true },
  ...{ check: true, onStdout: true, onStderr: true },
};

export function execMessage(
  sandboxId: string,
  command: Command,
  options: Omit<CommandOptions, "signal">,
): MessageInitShape<typeof ExecRequestSchema> {
  requireKnownMembers(options, RUNNING, "the options of a command");
  const { env, workdir = "", timeoutMs, stdin } = options;
  return {
    ...commandMembers(sandboxId, command, { env, workdir, timeoutMs }),
    ...(stdin === undefined ? {} : typeof stdin === "string" ? { stdin } : { stdinBytes: stdin }),
  };
}

/** What every message has that starts something. */
export function commandMembers(
  sandboxId: string,
  command: Command,
  { env, workdir = "", timeoutMs }: Pick<CommandOptions, "env" | "workdir" | "timeoutMs">,
) {
  if (typeof command !== "string" && !Array.isArray(command)) {
    throw invalid("a command is a line for the shell, or a list of a program and its arguments");
  }
  return {
    sandboxId,
    ...(typeof command === "string" ? { command } : { argv: Array.from<string>(command) }),
    env: { ...env },
    workdir,
    ...(timeoutMs === undefined ? {} : { timeout: durationOf(timeoutMs, "timeoutMs") }),
  };
}

/** A command as somebody would type it. */
export function commandText(command: Command): string {
  return typeof command === "string" ? command : command.map(shellWord).join(" ");
}

/** One word for a shell, whatever is in it. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

export function runResultOf(message: ExecResult, command: Command): RunResult {
  const end = endOf(message);
  const encoder = new TextEncoder();
  return {
    command: commandText(command),
    success: end.exitCode === 0 && !end.timedOut,
    ...end,
    stdout: message.stdout,
    stderr: message.stderr,
    // Sent only where the text is not all of it.
    stdoutBytes: message.stdoutBytes.length > 0 ? message.stdoutBytes : encoder.encode(message.stdout),
    stderrBytes: message.stderrBytes.length > 0 ? message.stderrBytes : encoder.encode(message.stderr),
    truncated: message.truncated,
  };
}

/** Output, or the end, which is the one with an exit code. */
export function commandEventOf(message: ExecOutput): CommandEvent {
  const { exitCode, type, data } = message;
  if (exitCode !== undefined) return { kind: "exit", end: endOf({ ...message, exitCode }) };
  return { kind: type === OutputType.STDERR ? "stderr" : "stdout", data };
}

type EndMembers = Pick<
  ExecResult,
  "exitCode" | "signal" | "timedOut" | "outOfMemory" | "duration" | "sessionClosed" | "syncedVersion" | "syncProblems"
>;

function endOf(message: EndMembers): CommandEnd {
  return {
    exitCode: message.exitCode,
    signal: message.signal === "" ? undefined : message.signal,
    timedOut: message.timedOut,
    outOfMemory: message.outOfMemory,
    durationMs: msOf(message.duration),
    sessionClosed: message.sessionClosed,
    syncedVersion: numberOf(message.syncedVersion),
    syncProblems: [...message.syncProblems],
  };
}
