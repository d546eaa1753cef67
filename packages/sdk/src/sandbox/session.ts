import type { SandboxClient } from "../client/client.ts";
import { expectSuccess } from "../client/exec.ts";
import { SessionClosedError, SessionNotFoundError } from "../errors.ts";
import type { OutputCallbacks } from "../model/options.ts";
import type { RunResult, SessionInfo } from "../model/records.ts";
import type { SessionExecOptions, SessionStreamOptions } from "../model/requests.ts";
import type { Execution } from "./execution/execution.ts";
import { startSessionCommand } from "./execution/start-command.ts";

/** A shell that keeps its directory, variables, functions and background jobs from one command to the next. */
export class Session implements AsyncDisposable {
  readonly id: string;
  readonly shell: string;
  readonly #client: SandboxClient;
  #closed = false;

  /** `Sandbox.session` makes one. */
  constructor(client: SandboxClient, { id, shell, status }: SessionInfo) {
    this.#client = client;
    this.id = id;
    this.shell = shell;
    this.#closed = status === "closed";
  }

  /** As far as is known here: it was closed, or a command ended its shell. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Runs a line and waits for its end. One that runs out of time is interrupted; the session stays. */
  async exec(command: string, options: SessionExecOptions & OutputCallbacks = {}): Promise<RunResult> {
    this.#requireOpen();
    const { onStdout, onStderr, check = false, signal, timeoutMs } = options;
    const isHeard = onStdout !== undefined || onStderr !== undefined;
    const result = isHeard
      ? await startSessionCommand(this.#client, this.id, command, options).wait()
      : await this.#client.sessionExec(this.id, command, { signal, timeoutMs });
    this.#closed ||= result.sessionClosed;
    if (check) expectSuccess(result);
    return result;
  }

  /** Starts a line, whose output comes as it is printed. It takes no input. */
  async stream(command: string, options: SessionStreamOptions & OutputCallbacks = {}): Promise<Execution> {
    this.#requireOpen();
    return startSessionCommand(this.#client, this.id, command, options);
  }

  /** Ends the shell and all that runs in it. One that has ended already, by itself or with its sandbox, is no error. */
  async close(): Promise<void> {
    if (this.#closed) return;
    try {
      await this.#client.destroySession(this.id);
    } catch (error) {
      if (!(error instanceof SessionNotFoundError)) throw error;
    }
    this.#closed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #requireOpen(): void {
    if (!this.#closed) return;
    throw new SessionClosedError("the session is closed", {
      code: "SESSION_CLOSED",
      hint: "open another one with sandbox.session()",
      details: { session_id: this.id },
    });
  }
}
