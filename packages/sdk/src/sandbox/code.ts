import type { SandboxClient } from "../client/client.ts";
import { SandboxError } from "../errors.ts";
import type { CodeResult } from "../model/code-result.ts";
import type { CallOptions } from "../model/options.ts";
import type { CodeContextInfo, CodeEnd, CodeError, CodeLanguage, CodeStart } from "../model/records.ts";
import type { CodeOptions } from "../model/requests.ts";

const RUN_TIMEOUT_MS = 60_000;

/** What is called while code runs, in the order of what it does. */
export interface CodeCallbacks {
  readonly onStdout?: ((text: string) => void) | undefined;
  readonly onStderr?: ((text: string) => void) | undefined;
  readonly onResult?: ((result: CodeResult) => void) | undefined;
  readonly onError?: ((error: CodeError) => void) | undefined;
}

export interface RunCodeOptions extends Omit<CodeOptions, "contextId">, CodeCallbacks {
  /** Default: the language's own, which is made when it is first used. */
  readonly context?: CodeContext | string | undefined;
}

/** What became of a piece of code. An error of the code is a result. */
export interface CodeExecution extends CodeStart, CodeEnd {
  /** What it displayed, and at last the value of its last expression. */
  readonly results: readonly CodeResult[];
  readonly stdout: string;
  readonly stderr: string;
  readonly error: CodeError | undefined;
  /** The value of its last expression as text. */
  readonly text: string | undefined;
}

/** An interpreter in the sandbox that keeps the names that code gives. */
export class CodeContext implements AsyncDisposable {
  readonly id: string;
  readonly language: CodeLanguage;
  readonly workdir: string;
  /** As the server last said. */
  readonly info: CodeContextInfo;
  readonly #client: SandboxClient;

  /** `Sandbox.createCodeContext` and `Sandbox.codeContexts` make one. */
  constructor(client: SandboxClient, info: CodeContextInfo) {
    this.#client = client;
    this.info = info;
    this.id = info.id;
    this.language = info.language;
    this.workdir = info.workdir;
  }

  /** Runs code when that of others is through, and waits for its end. */
  async run(code: string, options: Omit<RunCodeOptions, "context"> = {}): Promise<CodeExecution> {
    return await runCode(this.#client, this.info.sandboxId, code, { ...options, context: this.id });
  }

  /** What runs ends with a KeyboardInterrupt; the names stay. */
  async interrupt(options: CallOptions = {}): Promise<void> {
    await this.#client.interruptCodeContext(this.info.sandboxId, this.id, options);
  }

  /** Ends the interpreter with all that it started, and begins with a new one. */
  async restart(options: CallOptions = {}): Promise<void> {
    await this.#client.restartCodeContext(this.info.sandboxId, this.id, options);
  }

  /** Ends it. One that is gone already is no error. */
  async remove(options: CallOptions = {}): Promise<void> {
    try {
      await this.#client.deleteCodeContext(this.info.sandboxId, this.id, options);
    } catch (error) {
      const isGone = error instanceof SandboxError && error.code === "CONTEXT_NOT_FOUND";
      if (!isGone) throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.remove();
  }
}

export async function runCode(
  client: SandboxClient,
  sandboxId: string,
  code: string,
  options: RunCodeOptions,
): Promise<CodeExecution> {
  const { context, onStdout, onStderr, onResult, onError, timeoutMs = RUN_TIMEOUT_MS, ...rest } = options;
  const contextId = context instanceof CodeContext ? context.id : context;
  const streams = { stdout: new TextStream(onStdout), stderr: new TextStream(onStderr) };
  const results: CodeResult[] = [];
  let start: CodeStart = { contextId: contextId ?? "", executionCount: 0, restarted: undefined };
  let error: CodeError | undefined;
  let end: CodeEnd | undefined;
  for await (const event of client.runCode(sandboxId, code, { ...rest, contextId, timeoutMs })) {
    switch (event.kind) {
      case "started":
        start = event.start;
        break;
      case "stdout":
      case "stderr":
        streams[event.kind].take(event.data);
        break;
      case "result":
        results.push(event.result);
        onResult?.(event.result);
        break;
      case "error":
        error = event.error;
        onError?.(error);
        break;
      case "end":
        end = event.end;
    }
  }
  const text = results.findLast(({ isMain }) => isMain)?.text;
  return { ...start, ...end!, results, stdout: streams.stdout.end(), stderr: streams.stderr.end(), error, text };
}

/** UTF-8 in pieces that may cut characters. */
class TextStream {
  readonly #decoder = new TextDecoder();
  readonly #onText: ((text: string) => void) | undefined;
  #text = "";

  constructor(onText: ((text: string) => void) | undefined) {
    this.#onText = onText;
  }

  take(data: Uint8Array): void {
    this.#tell(this.#decoder.decode(data, { stream: true }));
  }

  end(): string {
    this.#tell(this.#decoder.decode());
    return this.#text;
  }

  #tell(text: string): void {
    if (text === "") return;
    this.#text += text;
    this.#onText?.(text);
  }
}
