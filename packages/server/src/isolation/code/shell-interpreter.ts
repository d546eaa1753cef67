import { constants } from "node:os";
import { cancelled, IsolationError } from "../backend/isolation-error.ts";
import type { Cancellable } from "../exec/api.ts";
import type { ShellSession } from "../session/session.ts";
import type { CodeError, CodeOutcome } from "./api.ts";
import type { Interpreter, InterpreterEvent, KernelRequest } from "./kernel.ts";

/** A shell that stays, as what runs the code of a context. The exit code of its last command is that of the code. */
export class ShellInterpreter implements Interpreter {
  readonly name: string;
  readonly ended: Promise<string>;
  readonly #session: ShellSession;
  readonly #outputBytes: number;
  #count = 0;
  #interrupted: AbortController | undefined;

  constructor(session: ShellSession, outputBytes: number) {
    this.#session = session;
    this.#outputBytes = outputBytes;
    this.name = session.shell;
    this.ended = session.ended.then(({ reason, exitCode }) =>
      exitCode === undefined ? `it was ${reason}` : `it ended with exit code ${exitCode}`,
    );
  }

  async *run(request: KernelRequest, { signal }: Cancellable): AsyncGenerator<InterpreterEvent, void, undefined> {
    const { code, env, timeoutMs } = request;
    if (code.trim() !== "") this.#count += 1;
    yield { kind: "started", count: this.#count };
    const interrupted = new AbortController();
    this.#interrupted = interrupted;
    const either = signal === undefined ? interrupted.signal : AbortSignal.any([signal, interrupted.signal]);
    const room = { stdout: this.#outputBytes, stderr: this.#outputBytes };
    let truncated = false;
    const beganMs = performance.now();
    try {
      if (Object.keys(env).length > 0) await this.#session.exec({ command: brought(env) }, { signal: either });
      const events = this.#session.execStream(
        { command: code, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
        { signal: either },
      );
      for await (const event of events) {
        if (event.kind !== "exit") {
          const data = event.data.subarray(0, room[event.kind]);
          room[event.kind] -= data.length;
          truncated ||= data.length < event.data.length;
          if (data.length > 0) yield { kind: event.kind, data };
          continue;
        }
        const contextLost = this.#session.closed !== undefined;
        if (event.outcome.timedOut || contextLost)
          yield { kind: "error", error: contextLost ? shellEnded(event.outcome.exitCode) : interruptedError() };
        if (!contextLost && Object.keys(env).length > 0)
          await this.#session.exec({ command: putBack(env) }, { signal });
        yield {
          kind: "exit",
          outcome: { ...event.outcome, truncated: truncated || event.outcome.truncated, contextLost },
        };
      }
    } catch (error) {
      if (!(error instanceof IsolationError)) throw error;
      const durationMs = performance.now() - beganMs;
      if (error.code === "SESSION_CLOSED" || this.#session.closed !== undefined) {
        yield { kind: "error", error: { ...shellEnded(undefined), value: error.message } };
        yield { kind: "exit", outcome: outcome(137, { durationMs, truncated, contextLost: true }) };
        return;
      }
      if (!interrupted.signal.aborted || signal?.aborted) throw error;
      yield { kind: "error", error: interruptedError() };
      yield {
        kind: "exit",
        outcome: outcome(128 + constants.signals.SIGINT, { durationMs, truncated, contextLost: false }),
      };
    } finally {
      this.#interrupted = undefined;
    }
  }

  interrupt(): void {
    this.#interrupted?.abort(cancelled("interrupted"));
  }

  signal(signalNumber: number): Promise<void> {
    return this.#session.signal(signalNumber);
  }

  close(): Promise<void> {
    return this.#session.close();
  }
}

function outcome(exitCode: number, how: Pick<CodeOutcome, "durationMs" | "truncated" | "contextLost">): CodeOutcome {
  return { exitCode, timedOut: false, outOfMemory: false, ...how };
}

function interruptedError(): CodeError {
  return { name: "KeyboardInterrupt", value: "", traceback: "KeyboardInterrupt\n" };
}

function shellEnded(exitCode: number | undefined): CodeError {
  const how = exitCode === undefined ? "" : `: it ended with exit code ${exitCode}`;
  const value = `the shell of this context is no more${how}. The next code gets a new one, which knows nothing.`;
  return { name: "ContextLost", value, traceback: `ContextLost: ${value}\n` };
}

/** Sets variables, and remembers in the shell what they were; `$?` stays what it was. */
function brought(env: Readonly<Record<string, string>>): string {
  const lines = Object.entries(env).map(
    ([name, value]) =>
      `__agentfense_had_${name}=\${${name}+x} __agentfense_was_${name}=\${${name}-}; export ${name}=${quoted(value)}`,
  );
  return keepingStatus(lines);
}

function putBack(env: Readonly<Record<string, string>>): string {
  const lines = Object.keys(env).map((name) => {
    const [had, was] = [`__agentfense_had_${name}`, `__agentfense_was_${name}`];
    return `if [ -n "$${had}" ]; then ${name}=$${was}; else unset ${name}; fi; unset ${had} ${was}`;
  });
  return keepingStatus(lines);
}

function keepingStatus(lines: readonly string[]): string {
  return ["__agentfense_kept=$?", ...lines, "(exit $__agentfense_kept)"].join("\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
