import { type CommandEnding, type CommandWork, OUTPUT_BYTES, runCommand } from "../commands/execution.ts";
import { type ByteSource, fixedSource, readAll, type Stdio } from "../commands/stdio.ts";
import { Fault } from "../faults.ts";
import type { CommandScript, MockCommand } from "../mock-command.ts";
import { untilExit } from "../shell/program.ts";
import { Shell } from "../shell/shell.ts";
import { ShellState } from "../shell/state.ts";
import { giveAnswer } from "./answer.ts";
import { checkCommand, checkEnvironment, effectiveTimeout, workingDirectory } from "./requests.ts";
import type { MockSandbox } from "./sandbox.ts";
import { syncAfterCommand } from "./sync.ts";

export interface ExecCall {
  /** A line for the shell, or a program and its arguments. */
  readonly command: string | readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  /** Given with the command, or coming while it runs. */
  readonly stdin: Uint8Array | AsyncIterable<Uint8Array>;
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal;
}

export interface ExecEnd extends CommandEnding {
  readonly sessionClosed: boolean;
  readonly syncedVersion: number;
  readonly syncProblems: readonly string[];
}

export type ExecPart =
  | { readonly kind: "stdout" | "stderr"; readonly data: Uint8Array }
  | { readonly kind: "exit"; readonly end: ExecEnd };

/** A command and where it runs. */
export interface Commission {
  readonly sandbox: MockSandbox;
  readonly command: string | readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly stdinText: string;
  readonly sessionId?: string;
  readonly isTerminal?: true;
  readonly process?: number | undefined;
}

/** Runs commands: by an answer that a test has prepared, else by the little shell. */
export class Commands {
  readonly #script: CommandScript;
  readonly #onCommand: (command: MockCommand) => void;

  constructor(script: CommandScript, onCommand: (command: MockCommand) => void) {
    this.#script = script;
    this.#onCommand = onCommand;
  }

  /** One that outlives its call ends by a signal of its own, and has no time limit but the one it was given. */
  async *exec(
    sandbox: MockSandbox,
    call: ExecCall,
    process?: { readonly number: number; readonly killed: AbortSignal },
  ): AsyncGenerator<ExecPart> {
    checkCommand(call.command);
    checkEnvironment(call.env);
    const ended = sandbox.requireAwake();
    const env = { ...sandbox.facts.env, ...call.env };
    const workdir = workingDirectory(sandbox, call.workdir);
    const { stdin, stdinText } = inputOf(call.stdin);
    const { command, env: ownEnv } = call;
    const commission: Commission = { sandbox, command, env: ownEnv, workdir, stdinText, process: process?.number };
    const state = new ShellState(workdir, env);
    const work: CommandWork = (stdio) => untilExit(this.work(commission, state, stdio));
    yield* supervised(commission, work, {
      stdin,
      timeoutMs: process === undefined ? effectiveTimeout(call.timeoutMs) : call.timeoutMs,
      timeoutSignal: "SIGKILL",
      signal: call.signal,
      ended: process === undefined ? ended : AbortSignal.any([ended, process.killed]),
    });
  }

  /** The whole of a command. `exit` is thrown as an ExitRequest: it ends the shell whose state this is. */
  async work(commission: Commission, state: ShellState, stdio: Stdio): Promise<number> {
    const { sandbox, command: given } = commission;
    const command = commandOf(commission, stdio.stdin);
    this.#onCommand(command);
    const response = this.#script.responseTo(command);
    if (response !== undefined) return await giveAnswer(response, command, sandbox.view, stdio);
    const shell = this.#shell(commission);
    if (typeof given === "string") return await shell.run(given, state, stdio);
    return await shell.runProgram(given, state, stdio);
  }

  #shell(commission: Commission): Shell {
    const { sandbox } = commission;
    return new Shell({
      files: sandbox.files,
      prepared: (argv, { cwd }) => {
        const line = argv.join(" ");
        // The whole line was asked about already.
        if (line === textOf(commission.command)) return undefined;
        const about = (stdin: ByteSource) =>
          commandOf({ ...commission, command: line, workdir: cwd, stdinText: "" }, stdin);
        const response = this.#script.responseTo(about(fixedSource(new Uint8Array())));
        if (response === undefined) return undefined;
        return (stdio) => giveAnswer(response, about(stdio.stdin), sandbox.view, stdio);
      },
    });
  }
}

/** Whatever becomes of a command: its end is on record, and what it wrote is synced. */
export async function* supervised(
  commission: Commission,
  work: CommandWork,
  terms: Parameters<typeof runCommand>[1],
  isSessionClosed: () => boolean = () => false,
): AsyncGenerator<ExecPart> {
  const { sandbox } = commission;
  let isOver = false;
  const over = (data: Readonly<Record<string, unknown>>) => {
    isOver = true;
    const terminal = commission.isTerminal === undefined ? {} : { terminal: true };
    const process = commission.process === undefined ? {} : { process: commission.process };
    sandbox.tell("command_executed", {
      ...(commission.sessionId === undefined ? {} : { sessionId: commission.sessionId }),
      data: { command: textOf(commission.command), ...data, ...terminal, ...process },
    });
    return syncAfterCommand(sandbox);
  };
  const beganAtMs = performance.now();
  const failed = (error: string) => {
    const durationMs = Math.round(performance.now() - beganAtMs);
    over({ exit_code: -1, duration_ms: durationMs, timed_out: false, error });
  };
  try {
    for await (const part of runCommand(work, terms)) {
      if (part.kind !== "exit") {
        yield part;
        continue;
      }
      const { ending } = part;
      if (ending.timedOut) limitExceeded(sandbox, "time", `a command was killed after ${terms.timeoutMs} ms`);
      const { version, problems } = over({
        exit_code: ending.exitCode,
        duration_ms: Math.round(ending.durationMs),
        timed_out: ending.timedOut,
      });
      const synced = { syncedVersion: version, syncProblems: problems };
      yield { kind: "exit", end: { ...ending, ...synced, sessionClosed: isSessionClosed() } };
    }
  } catch (error) {
    if (!isOver) failed(error instanceof Fault ? error.code : "INTERNAL");
    throw error;
  } finally {
    // The reader left, which killed it.
    if (!isOver) failed("CANCELLED");
  }
}

export function outputLimit({ facts }: MockSandbox): number {
  return facts.resources.outputBytes ?? OUTPUT_BYTES;
}

export function limitExceeded(sandbox: MockSandbox, limit: "time" | "output", detail: string): void {
  sandbox.tell("resource_limit_exceeded", { level: "warn", data: { limit, detail } });
}

function inputOf(given: ExecCall["stdin"]) {
  if (!(given instanceof Uint8Array)) return { stdin: given, stdinText: "" };
  return { stdin: fixedSource(given), stdinText: Buffer.from(given).toString("utf8") };
}

function textOf(command: string | readonly string[]): string {
  return typeof command === "string" ? command : command.join(" ");
}

function commandOf(commission: Commission, stdin: ByteSource): MockCommand {
  const { sandbox, command, env, workdir, stdinText, sessionId } = commission;
  let input: Promise<string> | undefined;
  return {
    command: textOf(command),
    ...(typeof command === "string" ? {} : { argv: command }),
    env,
    workdir,
    stdin: stdinText,
    sandboxId: sandbox.id,
    ...(sessionId === undefined ? {} : { sessionId }),
    readInput() {
      input ??= readAll(stdin).then((bytes) => bytes.toString("utf8"));
      return input;
    },
  };
}
