import { fileURLToPath } from "node:url";
import type { ExecRequest, IsolationOptions, SandboxSpec } from "@agentfense/server/isolation";
import { type As, identityOf } from "./identity.ts";
import { Peer } from "./peer.ts";

export type SandboxRequest =
  | { readonly method: "open"; readonly options: IsolationOptions; readonly environment: Record<string, string> }
  | { readonly method: "create"; readonly spec: SandboxSpec }
  | { readonly method: "exec"; readonly id: string; readonly request: ExecRequest }
  | { readonly method: "session"; readonly id: string; readonly command: string }
  | { readonly method: "terminal"; readonly id: string; readonly argv: readonly [string, ...string[]] }
  | { readonly method: "begin"; readonly id: string; readonly command: readonly string[] }
  | { readonly method: "end"; readonly task: number }
  | { readonly method: "destroy"; readonly id: string }
  | { readonly method: "close" };

export interface Output {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What each request is answered with. */
export interface SandboxAnswers {
  readonly open: readonly string[];
  readonly create: string;
  readonly exec: Output;
  readonly session: Output;
  readonly terminal: string;
  readonly begin: { readonly task: number; readonly firstLine: string };
  readonly end: string;
  readonly destroy: undefined;
  readonly close: undefined;
}

/** The test's side of a process that has sandboxes. */
export class SandboxDaemon implements AsyncDisposable {
  readonly #peer: Peer;

  private constructor(as: As) {
    this.#peer = new Peer(fileURLToPath(new URL("./sandbox-daemon.ts", import.meta.url)), { identity: identityOf(as) });
  }

  /** `environment` is added to that of the process, for what it starts to inherit. */
  static async start(
    as: As,
    options: IsolationOptions,
    environment: Record<string, string> = {},
  ): Promise<SandboxDaemon> {
    const daemon = new SandboxDaemon(as);
    try {
      await daemon.ask({ method: "open", options, environment });
    } catch (error) {
      await daemon.kill();
      throw error;
    }
    return daemon;
  }

  get pid(): number {
    return this.#peer.pid;
  }

  async ask<R extends SandboxRequest>(request: R): Promise<SandboxAnswers[R["method"]]> {
    return (await this.#peer.ask(request)) as SandboxAnswers[R["method"]];
  }

  /** Lets the process close what it opened; fails when that fails. */
  async close(): Promise<void> {
    try {
      await this.ask({ method: "close" });
    } finally {
      await this.kill();
    }
  }

  async kill(): Promise<void> {
    await this.#peer.kill("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
