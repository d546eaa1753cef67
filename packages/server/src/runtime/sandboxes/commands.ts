import type { ExecOutcome, ExecRequest } from "../../isolation/exec/api.ts";
import type { Caller } from "../caller.ts";
import { RuntimeError } from "../runtime-error.ts";
import type { ExecEnd, Sandboxes } from "./api.ts";
import { clippedCommand } from "./audit-trail.ts";
import type { ExecOutcomeName } from "./options.ts";
import type { Parts } from "./parts.ts";
import { toRuntimeError, translating } from "./refusals.ts";
import type { RegisteredSandbox } from "./registered-sandbox.ts";
import { checkTerms, timeoutOf } from "./request.ts";
import type { SyncReport } from "./sync.ts";

type CommandParts = Pick<Parts, "sync" | "auditTrail" | "observe" | "clock">;

/** A command that runs, and who asked for it. */
export interface AskedCommand {
  readonly registered: RegisteredSandbox;
  readonly caller: Caller;
  readonly command: string | readonly string[];
  readonly sessionId?: string;
  readonly terminal?: true;
  /** Code and no command: its language, "" for that of its context. */
  readonly code?: string;
  /** The number of one that outlives its call. */
  readonly process?: number;
}

/** Follows commands to their end: whatever becomes of one, what it wrote is synced and its end is told. */
export class Commands {
  readonly #parts: CommandParts;

  constructor(parts: CommandParts) {
    this.#parts = parts;
  }

  /** The result of a command with what its sync has to say. */
  async supervise<T extends ExecOutcome>(asked: AskedCommand, work: Promise<T>): Promise<T & ExecEnd> {
    const beganAtMs = this.#parts.clock();
    let result: T;
    try {
      result = await work;
    } catch (error) {
      throw await this.#failed(asked, beganAtMs, error);
    }
    const synced = await this.#ended(asked, result);
    return { ...result, ...endOf(result, synced) };
  }

  /** As they come; leaving the loop early ends the command. `isSessionClosed` is asked when it is over. */
  async *superviseStream<Event extends { readonly kind: string }, Outcome extends ExecOutcome = ExecOutcome>(
    asked: AskedCommand,
    events: AsyncIterable<Event | { readonly kind: "exit"; readonly outcome: Outcome }>,
    isSessionClosed: () => boolean = () => false,
  ): AsyncGenerator<Exclude<Event, { kind: "exit" }> | { readonly kind: "exit"; readonly end: Outcome & ExecEnd }> {
    const beganAtMs = this.#parts.clock();
    let over = false;
    try {
      for await (const event of events) {
        if (!isExit(event)) {
          yield event as Exclude<Event, { kind: "exit" }>;
          continue;
        }
        over = true;
        const { outcome } = event as { readonly outcome: Outcome };
        const synced = await this.#ended(asked, outcome);
        yield { kind: "exit", end: { ...outcome, ...endOf(outcome, synced), sessionClosed: isSessionClosed() } };
      }
    } catch (error) {
      if (over) throw error;
      over = true;
      throw await this.#failed(asked, beganAtMs, error);
    } finally {
      const left = new RuntimeError("CANCELLED", "the reader left");
      if (!over) await this.#failed(asked, beganAtMs, left);
    }
  }

  async #ended(asked: AskedCommand, outcome: ExecOutcome): Promise<SyncReport> {
    const { registered, caller } = asked;
    this.#parts.observe?.exec?.(outcome.durationMs, outcome.timedOut ? "timed_out" : "exited");
    this.#tell(asked, {
      exit_code: outcome.exitCode,
      duration_ms: Math.round(outcome.durationMs),
      timed_out: outcome.timedOut,
    });
    return await this.#parts.sync.afterCommand(registered, caller);
  }

  /** It may have written before it failed. */
  async #failed(asked: AskedCommand, beganAtMs: number, cause: unknown): Promise<RuntimeError> {
    const { registered, caller } = asked;
    const error = toRuntimeError(cause);
    const durationMs = Math.max(0, this.#parts.clock() - beganAtMs);
    const outcome: ExecOutcomeName = error.code === "CANCELLED" ? "cancelled" : "failed";
    this.#parts.observe?.exec?.(durationMs, outcome);
    this.#tell(asked, { exit_code: -1, duration_ms: durationMs, timed_out: false, error: error.code });
    await this.#parts.sync.afterCommand(registered, caller);
    return error;
  }

  #tell(asked: AskedCommand, told: Readonly<Record<string, unknown>>): void {
    const { registered, caller, command, sessionId, terminal, process, code } = asked;
    this.#parts.auditTrail.tell("command_executed", registered, caller, {
      sessionId,
      data: { command: clippedCommand(command), ...told, terminal, process, code },
    });
  }
}

type Calls = "exec" | "execStream" | "openTerminal";

/** The calls that run commands. */
export function commandCalls({ registry, pausing, commands }: Parts): Pick<Sandboxes, Calls> {
  return {
    async exec(caller, id, call) {
      const registered = await registry.findReturned(caller, id);
      const request = checked(call);
      return await registry.ending(async () => {
        using entered = await pausing.enter(caller, registered, { command: true });
        const running = entered.sandbox.exec(request, call);
        return await commands.supervise({ registered, caller, command: call.command }, running);
      });
    },

    async *execStream(caller, id, call) {
      const registered = await registry.findReturned(caller, id);
      const request = checked(call);
      using entered = await pausing.enter(caller, registered, { command: true });
      const events = entered.sandbox.execStream(request, call);
      yield* commands.superviseStream({ registered, caller, command: call.command }, events);
    },

    async openTerminal(caller, id, request) {
      const registered = await registry.findReturned(caller, id);
      const { argv, env, workdir, size } = request;
      checkTerms({ ...request, command: argv.length > 0 ? argv : undefined });
      using stack = new DisposableStack();
      const { sandbox } = stack.use(await pausing.enter(caller, registered, { command: true }));
      const terminal = await translating(
        sandbox.terminal({ ...(argv.length === 0 ? {} : { argv: foundOnPath(argv) }), env, workdir, size }, request),
      );
      const exit = commands.supervise({ registered, caller, command: argv, terminal: true }, terminal.exit);
      const entered = stack.move();
      const leave = (): void => entered.dispose();
      exit.then(leave, leave); // awaited by whoever cares
      return {
        output: terminal.output as AsyncIterable<Uint8Array>,
        exit,
        write: (data) =>
          new Promise((resolve, reject) => {
            terminal.input.write(data, (error) => (error ? reject(toRuntimeError(error)) : resolve()));
          }),
        resize: (newSize) => translating(terminal.resize(newSize)),
        close: async () => {
          terminal.kill();
          await exit.catch(() => {});
        },
      };
    },
  };
}

function checked({ timeoutMs, ...request }: ExecRequest): ExecRequest {
  checkTerms(request);
  return { ...request, ...timeoutOf(timeoutMs) };
}

/** A terminal takes a program by its place; a shell finds the others. */
function foundOnPath([program = "", ...rest]: readonly string[]): readonly [string, ...string[]] {
  return program.startsWith("/") ? [program, ...rest] : ["/bin/sh", "-c", 'exec "$@"', "sh", program, ...rest];
}

function isExit(event: { readonly kind: string }): boolean {
  return event.kind === "exit";
}

function endOf(outcome: ExecOutcome & { readonly sessionClosed?: boolean }, synced: SyncReport): ExecEnd {
  const { sessionClosed = false } = outcome;
  return { ...outcome, sessionClosed, syncedVersion: synced.version, syncProblems: synced.problems };
}
