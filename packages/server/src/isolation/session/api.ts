import type { Cancellable, ExecEvent, ExecResult } from "../exec/api.ts";

export interface SessionRequest {
  /** bash, sh, dash or zsh, by name or as /bin/NAME; default: the sandbox's first shell. */
  readonly shell?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly workdir?: string;
  /** Closes the session when nothing was asked of it for so long. */
  readonly idleTimeoutMs?: number;
}

/** A shell that stays: cwd, variables, functions and background jobs live from command to command. */
export interface BoxSession extends AsyncDisposable {
  readonly id: string;
  readonly shell: string;
  /** Undefined while the shell lives. */
  readonly closed: SessionEnd | undefined;
  /** Resolves when the session closes, whatever closed it. */
  readonly ended: Promise<SessionEnd>;
  /** Callers take turns, first come first served. */
  exec(request: SessionExecRequest, options?: Cancellable): Promise<SessionExecResult>;
  execStream(request: SessionExecRequest, options?: Cancellable): AsyncIterable<ExecEvent>;
  close(): Promise<void>;
}

export interface SessionExecRequest {
  readonly command: string;
  readonly timeoutMs?: number;
}

export interface SessionExecResult extends ExecResult {
  /** The command ended the shell (`exit`, `exec`, `set -e`, a fatal signal); the session is closed. */
  readonly sessionClosed: boolean;
}

export interface SessionEnd {
  /** `hijacked`: another process took hold of the channel to the shell, whose answers then mean nothing. */
  readonly reason: "closed" | "exited" | "killed" | "hijacked" | "idle" | "stopped";
  /** The exit code of the shell, where it has one. */
  readonly exitCode?: number;
}
