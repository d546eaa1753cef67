import type { CodeContextSchema, CodeOutputSchema } from "@agentfense/protocol/sandbox";
import { CODE_LANGUAGES } from "@agentfense/protocol/words";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CodeContext, CodePart, Sandboxes } from "../../runtime/sandboxes/api.ts";
import type { MessageLimits } from "./exec-handlers.ts";
import type { SandboxHandlers } from "./handlers.ts";
import { fitting } from "./messages/exec.ts";
import { durationMessage, durationMs, given, timestampMessage, wordFor } from "./messages/fields.ts";
import { pieces } from "./streams.ts";

export function codeHandlers(sandboxes: Sandboxes, limits: MessageLimits) {
  return {
    async createCodeContext({ sandboxId, language, env, workdir }, { caller, signal }) {
      const wanted = wordFor(CODE_LANGUAGES, language, "language") ?? "python";
      const context = await sandboxes.createContext(caller, sandboxId, { language: wanted, env, workdir }, signal);
      return contextMessage(context, sandboxId);
    },

    listCodeContexts: async ({ sandboxId }, { caller }) => ({
      contexts: (await sandboxes.listContexts(caller, sandboxId)).map((context) => contextMessage(context, sandboxId)),
    }),

    restartCodeContext: async ({ sandboxId, contextId }, { caller, signal }) =>
      contextMessage(await sandboxes.restartContext(caller, sandboxId, contextId, signal), sandboxId),

    interruptCodeContext: ({ sandboxId, contextId }, { caller }) =>
      sandboxes.interruptContext(caller, sandboxId, contextId),

    deleteCodeContext: ({ sandboxId, contextId }, { caller }) => sandboxes.deleteContext(caller, sandboxId, contextId),

    async *runCode({ sandboxId, code, language, contextId, env, timeout }, { caller, signal }) {
      const parts = sandboxes.runCode(caller, sandboxId, {
        ...{ code, env, signal },
        ...given({
          language: wordFor(CODE_LANGUAGES, language, "language"),
          context: contextId === "" ? undefined : contextId,
          timeoutMs: durationMs(timeout, "timeout"),
        }),
      });
      for await (const part of parts) yield* outputMessages(part, limits);
    },
  } satisfies SandboxHandlers;
}

type Output = MessageInitShape<typeof CodeOutputSchema>;

function* outputMessages(part: CodePart, { maxMessageBytes }: MessageLimits): Generator<Output> {
  switch (part.kind) {
    case "started": {
      const { context: contextId, executionCount, restarted = "" } = part;
      yield { output: { case: "started", value: { contextId, executionCount, restarted } } };
      break;
    }
    case "stdout":
    case "stderr":
      for (const value of pieces(part.data)) yield { output: { case: part.kind, value } };
      break;
    case "result":
      yield { output: { case: "result", value: resultMembers(part.result, maxMessageBytes) } };
      break;
    case "error":
      yield { output: { case: "error", value: part.error } };
      break;
    case "exit": {
      const { exitCode, timedOut, truncated, outOfMemory, contextLost, durationMs: ms, syncedVersion } = part.end;
      const synced = {
        syncedVersion: BigInt(syncedVersion),
        syncProblems: fitting(part.end.syncProblems, maxMessageBytes / 4),
      };
      const value = {
        exitCode,
        timedOut,
        truncated,
        outOfMemory,
        contextLost,
        duration: durationMessage(ms),
        ...synced,
      };
      yield { output: { case: "end", value } };
      break;
    }
  }
}

type Result = Extract<CodePart, { kind: "result" }>["result"];

/** What does not fit a message is left out, the largest first, but for the plain text. */
function resultMembers({ isMain, data, dropped }: Result, maxMessageBytes: number) {
  const kept = Object.entries(data).map(([mime, text]) => ({ mime, text, bytes: Buffer.byteLength(text) }));
  const tooLarge = [...dropped];
  let bytes = kept.reduce((sum, each) => sum + each.bytes, 0);
  for (const largest of kept.toSorted((one, other) => other.bytes - one.bytes)) {
    if (bytes <= maxMessageBytes / 2) break;
    kept.splice(kept.indexOf(largest), 1);
    tooLarge.push(largest.mime);
    bytes -= largest.bytes;
  }
  return { isMain, data: Object.fromEntries(kept.map(({ mime, text }) => [mime, text])), dropped: tooLarge };
}

function contextMessage(context: CodeContext, sandboxId: string): MessageInitShape<typeof CodeContextSchema> {
  const { id, language, interpreter, workdir, isDefault, createdAtMs, executionCount, isBusy: busy } = context;
  return {
    ...{ id, sandboxId, language: CODE_LANGUAGES[language], interpreter, workdir, isDefault, executionCount, busy },
    createdAt: timestampMessage(createdAtMs),
  };
}
