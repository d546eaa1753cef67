import { randomBytes } from "node:crypto";
import { fixedSource } from "../commands/stdio.ts";
import { cancelled, Fault, invalid } from "../faults.ts";
import { ExitRequest } from "../shell/program.ts";
import { ShellState } from "../shell/state.ts";
import { type Commands, type Commission, type ExecPart, supervised } from "./commands.ts";
import { checkCommand, checkEnvironment, effectiveTimeout, workingDirectory } from "./requests.ts";
import type { MockSandbox } from "./sandbox.ts";

export interface SessionRequest {
  readonly shell: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly idleTimeoutMs: number | undefined;
}

type CloseReason = "closed" | "exited" | "idle" | "stopped";

const SHELL = /^(?:\/bin\/|\/usr\/bin\/)?(bash|sh|dash|zsh)$/;

/** Why a session that its client did not close is no more, for a person. */
const REASONS: Readonly<Record<Exclude<CloseReason, "closed">, string>> = {
  exited: "its shell ended",
  idle: "nothing was asked of it for too long",
  stopped: "its sandbox was stopped",
};

/** A shell that stays: its directory and variables live from command to command. */
export class MockSession {
  readonly id = `sess_${randomBytes(16).toString("hex")}`;
  readonly sandbox: MockSandbox;
  readonly shell: string;
  readonly createdAtMs = Date.now();
  closedAtMs: number | undefined;
  closeReason: CloseReason | "" = "";
  readonly #commands: Commands;
  readonly #state: ShellState;
  readonly #env: Readonly<Record<string, string>>;
  readonly #ended = new AbortController();
  readonly #idleTimeoutMs: number | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  /** Callers take turns, first come first served. */
  #turn: Promise<void> = Promise.resolve();

  constructor(sandbox: MockSandbox, request: SessionRequest, commands: Commands) {
    checkEnvironment(request.env);
    const stopped = sandbox.requireAwake();
    const name = request.shell === "" ? "bash" : SHELL.exec(request.shell)?.[1];
    if (name === undefined) throw invalid(`not a shell for sessions: ${JSON.stringify(request.shell)}`);
    this.sandbox = sandbox;
    this.shell = `/bin/${name}`;
    this.#commands = commands;
    this.#env = request.env;
    this.#state = new ShellState(workingDirectory(sandbox, request.workdir), { ...sandbox.facts.env, ...request.env });
    this.#idleTimeoutMs = request.idleTimeoutMs;
    stopped.addEventListener("abort", () => this.close("stopped"), { once: true });
    sandbox.tell("session_created", { sessionId: this.id, data: { shell: this.shell } });
    this.#rest();
  }

  async *exec(call: {
    readonly command: string;
    readonly timeoutMs: number | undefined;
    readonly signal: AbortSignal;
  }): AsyncGenerator<ExecPart> {
    checkCommand(call.command);
    const before = this.#turn;
    let endTurn = (): void => {};
    this.#turn = new Promise((resolve) => {
      endTurn = resolve;
    });
    try {
      await before;
      if (call.signal.aborted) throw cancelled();
      this.requireOpen();
      clearTimeout(this.#idleTimer);
      yield* this.#run(call);
    } finally {
      endTurn();
      this.#rest();
    }
  }

  requireOpen(): void {
    if (this.closeReason === "") return;
    // One that its client closed is as unknown as one that never was.
    if (this.closeReason === "closed") throw new Fault("SESSION_NOT_FOUND", "session not found");
    throw new Fault("SESSION_CLOSED", `session is closed: ${REASONS[this.closeReason]}`, {
      details: { reason: this.closeReason },
      hint: "open a new session",
    });
  }

  close(reason: CloseReason): void {
    if (this.closeReason !== "") return;
    this.closeReason = reason;
    this.closedAtMs = Date.now();
    clearTimeout(this.#idleTimer);
    this.#ended.abort();
    this.sandbox.tell("session_closed", { sessionId: this.id, data: { reason } });
    const durationMs = this.closedAtMs - this.createdAtMs;
    this.sandbox.tell("session_duration", { sessionId: this.id, data: { duration_ms: durationMs } });
  }

  async *#run(call: { command: string; timeoutMs: number | undefined; signal: AbortSignal }): AsyncGenerator<ExecPart> {
    const { sandbox, id: sessionId } = this;
    const { command } = call;
    const commission: Commission = {
      sandbox,
      command,
      env: this.#env,
      workdir: this.#state.cwd,
      stdinText: "",
      sessionId,
    };
    const terms = {
      stdin: fixedSource(new Uint8Array()),
      timeoutMs: effectiveTimeout(call.timeoutMs),
      timeoutSignal: "SIGINT",
      signal: call.signal,
      ended: this.#ended.signal,
    } as const;
    let isExited = false;
    const parts = supervised(
      commission,
      async (stdio) => {
        try {
          return await this.#commands.work(commission, this.#state, stdio);
        } catch (error) {
          if (!(error instanceof ExitRequest)) throw error;
          isExited = true;
          return error.exitCode;
        }
      },
      terms,
      () => isExited || this.closeReason !== "",
    );
    for await (const part of parts) {
      if (part.kind === "exit") {
        if (isExited) this.close("exited");
        // Closed under the command: as if it had been asked of the closed one.
        else this.requireOpen();
        this.#state.status = part.end.exitCode;
      }
      yield part;
    }
  }

  #rest(): void {
    clearTimeout(this.#idleTimer);
    if (this.#idleTimeoutMs === undefined || this.closeReason !== "") return;
    this.#idleTimer = setTimeout(() => this.close("idle"), this.#idleTimeoutMs);
    this.#idleTimer.unref();
  }
}
