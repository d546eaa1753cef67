import { type CodeContext, type CodeOutput, SandboxService } from "@agentfense/protocol/sandbox";
import { ConnectionError } from "../errors.ts";
import { CodeResult } from "../model/code-result.ts";
import type { CallOptions } from "../model/options.ts";
import type { CodeContextInfo, CodeEvent } from "../model/records.ts";
import type { CodeContextOptions, CodeOptions } from "../model/requests.ts";
import type { CallStream } from "./call-stream.ts";
import { patienceFor } from "./exec.ts";
import { CODE_LANGUAGES, dateOf, durationOf, msOf, numberFor, numberOf, wordOf } from "./messages/values.ts";
import type { Rpc } from "./rpc.ts";

const { method } = SandboxService;

/** Code in contexts. */
export class CodeCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  async create(sandboxId: string, options: CodeContextOptions = {}): Promise<CodeContextInfo> {
    const { language, env = {}, workdir = "", signal } = options;
    const request = { sandboxId, language: numberFor(CODE_LANGUAGES, language, "language"), env, workdir };
    return contextOf(await this.#rpc.unary(method.createCodeContext, request, { signal, timeoutMs: START_MS }));
  }

  async list(sandboxId: string, options?: CallOptions): Promise<CodeContextInfo[]> {
    const { contexts } = await this.#rpc.unary(method.listCodeContexts, { sandboxId }, options);
    return contexts.map(contextOf);
  }

  async restart(sandboxId: string, contextId: string, options?: CallOptions): Promise<CodeContextInfo> {
    const call = { ...options, timeoutMs: START_MS };
    return contextOf(await this.#rpc.unary(method.restartCodeContext, { sandboxId, contextId }, call));
  }

  async interrupt(sandboxId: string, contextId: string, options?: CallOptions): Promise<void> {
    await this.#rpc.unary(method.interruptCodeContext, { sandboxId, contextId }, options);
  }

  async delete(sandboxId: string, contextId: string, options?: CallOptions): Promise<void> {
    await this.#rpc.unary(method.deleteCodeContext, { sandboxId, contextId }, options);
  }

  run(sandboxId: string, code: string, options: CodeOptions = {}): CallStream<CodeEvent> {
    const { language, contextId = "", env = {}, timeoutMs, signal } = options;
    const request = {
      ...{ sandboxId, code, contextId, env, language: numberFor(CODE_LANGUAGES, language, "language") },
      ...(timeoutMs === undefined ? {} : { timeout: durationOf(timeoutMs, "timeoutMs") }),
    };
    // Its time begins with its turn, of which only the server knows.
    const outputs = this.#rpc.serverStream(method.runCode, request, { signal, timeoutMs: patienceFor(undefined) });
    return outputs.map(eventOf, { isLast: ({ kind }) => kind === "end", early: endedEarly });
  }
}

/** An interpreter on a busy machine takes its time to start. */
const START_MS = 120_000;

function contextOf(message: CodeContext): CodeContextInfo {
  const { id, sandboxId, interpreter, workdir, isDefault, executionCount, busy } = message;
  return {
    ...{ id, sandboxId, interpreter, workdir, isDefault, executionCount, busy },
    language: wordOf(CODE_LANGUAGES, message.language, "language of a context"),
    createdAt: dateOf(message.createdAt),
  };
}

function eventOf({ output }: CodeOutput): CodeEvent {
  switch (output.case) {
    case "started": {
      const { contextId, executionCount, restarted } = output.value;
      return { kind: "started", start: { contextId, executionCount, restarted: restarted || undefined } };
    }
    case "stdout":
    case "stderr":
      return { kind: output.case, data: output.value };
    case "result": {
      const { isMain, data, dropped } = output.value;
      return { kind: "result", result: new CodeResult({ isMain, data, dropped }) };
    }
    case "error": {
      const { name, value, traceback } = output.value;
      return { kind: "error", error: { name, value, traceback } };
    }
    case "end": {
      const { exitCode, timedOut, truncated, outOfMemory, contextLost, duration, syncedVersion, syncProblems } =
        output.value;
      const end = { exitCode, timedOut, truncated, outOfMemory, contextLost, durationMs: msOf(duration), syncProblems };
      return { kind: "end", end: { ...end, syncedVersion: numberOf(syncedVersion) } };
    }
    case undefined:
      // A newer server may have more to say.
      return { kind: "stdout", data: new Uint8Array() };
  }
}

function endedEarly(): ConnectionError {
  return new ConnectionError("the server did not say how the code ended", { code: "CONNECTION_FAILED" });
}
