import type { SandboxClient } from "../client/client.ts";
import { pause, pauseBefore } from "../client/retry.ts";
import { ConnectionError } from "../errors.ts";
import type { CallOptions } from "../model/options.ts";
import type { AuditEvent } from "../model/records.ts";

export interface EventsOptions extends CallOptions {
  /** Any of these; default: all. */
  readonly types?: readonly string[] | undefined;
  /** Only what came after the event with this sequence. */
  readonly afterSequence?: number | undefined;
  /** Go on with what happens; default true. Ends with the sandbox, or with the signal. */
  readonly follow?: boolean | undefined;
}

const LOST_FOR_GOOD_MS = 30_000;
/** Nothing may happen for hours: an attempt that held for so long was a connection. */
const HELD_MS = LOST_FOR_GOOD_MS / 2;
/** The last thing that is told of a sandbox. */
const LAST_EVENT = "sandbox_destroyed";

/** What happened so far, oldest first. */
export async function* pastEvents(
  client: SandboxClient,
  sandboxId: string,
  { types, afterSequence = 0, signal }: EventsOptions,
): AsyncGenerator<AuditEvent, void, undefined> {
  for await (const event of client.listEvents({ sandboxId, types, signal })) {
    if (event.sequence > afterSequence) yield event;
  }
}

/**
 * What happened so far, then what happens, without gaps or repeats: after a lost connection it goes on where it was. It gives
 * up when the server stays away for 30 s.
 */
export async function* followEvents(
  client: SandboxClient,
  sandboxId: string,
  { types, afterSequence = 0, signal }: EventsOptions,
): AsyncGenerator<AuditEvent, void, undefined> {
  const absence = new Absence();
  for (let cursor = afterSequence; ; ) {
    try {
      absence.attempt();
      for await (const event of client.watchEvents({ sandboxId, types, afterSequence: cursor, signal })) {
        absence.end();
        if (event.sequence <= cursor) continue;
        cursor = event.sequence;
        yield event;
        if (event.type === LAST_EVENT) return;
      }
      // A server that goes on purpose ends its streams in peace.
      throw new ConnectionError("the server ended the events", { code: "CONNECTION_FAILED", retryable: true });
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      await pause(absence.pauseAfter(error), signal);
    }
  }
}

/** For how long a server has been away, and how long to wait before it is asked again. */
class Absence {
  #attemptedAtMs = 0;
  #sinceMs: number | undefined;
  #failures = 0;

  attempt(): void {
    this.#attemptedAtMs = performance.now();
  }

  /** It is there. */
  end(): void {
    this.#sinceMs = undefined;
    this.#failures = 0;
  }

  /** Throws the error when it has been away for too long. */
  pauseAfter(error: ConnectionError): number {
    const nowMs = performance.now();
    if (nowMs - this.#attemptedAtMs > HELD_MS) this.end();
    this.#sinceMs ??= nowMs;
    const pauseMs = pauseBefore(this.#failures, error);
    this.#failures += 1;
    if (pauseMs === undefined || nowMs - this.#sinceMs > LOST_FOR_GOOD_MS) throw error;
    return pauseMs;
  }
}
