import type { Sandbox } from "@agentfense/sdk";
import type { DoorCall } from "../door.ts";

/** A browser for a sandbox. */
export interface AioBrowser {
  info(sandbox: Sandbox, options: { readonly signal: AbortSignal }): Promise<AioBrowserInfo>;
  screenshot(
    sandbox: Sandbox,
    options: {
      readonly format: "png" | "jpeg";
      readonly quality?: number | undefined;
      readonly signal: AbortSignal;
    },
  ): Promise<Uint8Array>;
  navigate(
    sandbox: Sandbox,
    options: {
      readonly url: string;
      readonly waitUntil: "load" | "domcontentloaded" | "networkidle" | "commit";
      readonly timeoutMs: number;
      readonly signal: AbortSignal;
    },
  ): Promise<{ readonly url: string; readonly title?: string | undefined; readonly status?: number | undefined }>;
}

export interface AioBrowserInfo {
  readonly userAgent: string;
  /** "" where clients cannot have the debugging protocol. */
  readonly cdpUrl: string;
  readonly viewport: { readonly width: number; readonly height: number };
}

export interface AioDoorOptions {
  /** Default: browser calls are answered with 501. */
  readonly browser?: AioBrowser | undefined;
  /** Answers `/mcp` and `/v1/mcp` for a sandbox; default: 501. Sessions of its own are to be kept apart by caller. */
  readonly mcp?: ((sandbox: Sandbox, request: Request, call: DoorCall) => Promise<Response>) | undefined;
  /** The longest that a command may ask the server for; default: a day. */
  readonly longestMs?: number | undefined;
  /** Default 32 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Shells, and as many bash sessions, that a caller may have in a sandbox; default 10. */
  readonly maxSessions?: number | undefined;
  /** What a caller has begun is ended when he has not come back for so long; default 30 min. */
  readonly idleMs?: number | undefined;
  /** Told what callers are not: failures inside. Default: nobody. */
  readonly onError?: ((error: unknown) => void) | undefined;
}
