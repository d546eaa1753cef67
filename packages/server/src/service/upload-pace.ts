import { RuntimeError } from "../runtime/runtime-error.ts";
import { unless } from "../runtime/waiting.ts";

/** How slow an upload may be; 0 switches a limit off. */
export interface UploadPace {
  readonly idleMs: number;
  readonly totalMs: number;
}

/** As slow as it likes: conversations (a terminal) may be silent for hours. */
export const UNHURRIED: UploadPace = { idleMs: 0, totalMs: 0 };

/**
 * The messages of an upload, as long as they keep coming and nobody ends the call. What is waited for is only the client: the time in
 * which the server works on a message does not count as idle.
 */
export async function* paced<Message>(
  messages: AsyncIterable<Message>,
  pace: UploadPace,
  signal: AbortSignal,
): AsyncGenerator<Message> {
  const iterator = messages[Symbol.asyncIterator]();
  const endsAtMs = pace.totalMs > 0 ? performance.now() + pace.totalMs : Number.POSITIVE_INFINITY;
  try {
    for (;;) {
      const idleMs = pace.idleMs > 0 ? pace.idleMs : Number.POSITIVE_INFINITY;
      const waitMs = Math.min(idleMs, endsAtMs - performance.now());
      const result = await unless(iterator.next(), { signal, waitMs, late: tooSlow });
      if (result.done === true) return;
      yield result.value;
    }
  } finally {
    void iterator.return?.().catch(() => {});
  }
}

function tooSlow(): never {
  throw new RuntimeError("LIMIT_EXCEEDED", "the upload is too slow");
}
