import { randomBytes } from "node:crypto";
import { SessionStatus } from "@agentfense/protocol/common";
import { type CreateSessionRequest, SessionSchema } from "@agentfense/protocol/sandbox";
import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { Turns } from "../turns.ts";
import { type Commands, type Commission, checkCommand, type Outcome, workingDirectory } from "./commands.ts";
import { Fault, invalid } from "./faults.ts";
import type { MockSandbox } from "./sandbox.ts";

const SHELL = /^(?:\/bin\/|\/usr\/bin\/)?(bash|sh|dash|zsh)$/;

/** A shell that stays, as far as it has no state: commands that say which session they are of, one after the other. */
export class MockSession {
  readonly sandbox: MockSandbox;
  /** As clients are told of it. */
  readonly message;
  readonly #commands: Commands;
  readonly #env: Readonly<Record<string, string>>;
  readonly #workdir: string;
  readonly #ended = new AbortController();
  /** Callers take turns, first come first served. */
  readonly #turns = new Turns();

  constructor(sandbox: MockSandbox, { shell, env, workdir }: CreateSessionRequest, commands: Commands) {
    const stopped = sandbox.requireAwake();
    const name = SHELL.exec(shell || "bash")?.[1];
    if (name === undefined) throw invalid(`not a shell for sessions: ${JSON.stringify(shell)}`);
    this.sandbox = sandbox;
    this.#commands = commands;
    this.#env = env;
    this.#workdir = workingDirectory(sandbox, workdir);
    this.message = create(SessionSchema, {
      id: `sess_${randomBytes(16).toString("hex")}`,
      sandboxId: sandbox.id,
      status: SessionStatus.ACTIVE,
      shell: `/bin/${name}`,
      createdAt: timestampNow(),
    });
    stopped.addEventListener("abort", () => this.close("stopped"), { once: true });
    sandbox.tell("session_created", { sessionId: this.message.id, data: { shell: this.message.shell } });
  }

  async exec(call: Pick<Commission, "timeoutMs" | "signal"> & { readonly command: string }): Promise<Outcome> {
    checkCommand(call.command);
    const outcome = await this.#turns.take(async () => {
      this.requireOpen();
      return await this.#commands.run({
        ...call,
        sandbox: this.sandbox,
        env: this.#env,
        workdir: this.#workdir,
        stdin: new Uint8Array(),
        timeoutSignal: "SIGINT",
        sessionId: this.message.id,
        ended: this.#ended.signal,
      });
    });
    // Closed under the command: as if it had been asked of the closed one.
    this.requireOpen();
    return outcome;
  }

  requireOpen(): void {
    const { closeReason } = this.message;
    if (closeReason === "") return;
    if (closeReason === "closed") throw new Fault("SESSION_NOT_FOUND", "session not found");
    throw new Fault("SESSION_CLOSED", `the session is closed: ${closeReason}`, { hint: "open another one" });
  }

  close(reason: "closed" | "stopped"): void {
    if (this.message.closeReason !== "") return;
    Object.assign(this.message, { closeReason: reason, status: SessionStatus.CLOSED, closedAt: timestampNow() });
    this.#ended.abort();
    this.sandbox.tell("session_closed", { sessionId: this.message.id, data: { reason } });
  }
}
