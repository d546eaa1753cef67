import type { Cancellable, ExecOutcome } from "../exec/api.ts";

/** `typescript` is JavaScript whose types are taken away first. */
export type CodeLanguage = "python" | "javascript" | "typescript" | "bash";

export interface CodeContextRequest {
  readonly language: CodeLanguage;
  readonly env?: Readonly<Record<string, string>>;
  /** Inside the sandbox, absolute or relative to the workspace; default where its commands run. */
  readonly workdir?: string;
}

export interface CodeRequest {
  readonly code: string;
  /** By its id; absent: the language's own, which is made when it is first used. */
  readonly context?: string | undefined;
  /** Default python. One of a context need not be told. */
  readonly language?: CodeLanguage | undefined;
  /** For this piece of code alone: put back afterwards. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: none. */
  readonly timeoutMs?: number;
}

/** An interpreter that stays, with the names that code gave. */
export interface CodeContext {
  readonly id: string;
  readonly language: CodeLanguage;
  /** What runs the code: "ipython", "python", "node 26.0.0", "/bin/bash". */
  readonly interpreter: string;
  readonly workdir: string;
  /** The one that code of this language gets when it names none. */
  readonly isDefault: boolean;
  readonly createdAtMs: number;
  /** Pieces of code since its interpreter started. */
  readonly executionCount: number;
  readonly isBusy: boolean;
}

/** What a piece of code shows, as MIME types to text; what is no text is in base64. */
export interface CodeResult {
  /** The value of its last expression; otherwise it was displayed. */
  readonly isMain: boolean;
  readonly data: Readonly<Record<string, string>>;
  /** MIME types that were too large. */
  readonly dropped: readonly string[];
}

export interface CodeError {
  readonly name: string;
  readonly value: string;
  readonly traceback: string;
}

export interface CodeOutcome extends ExecOutcome {
  /** Its interpreter has ended, with all that it knew; the next piece of code gets a new one. */
  readonly contextLost: boolean;
}

/** First `started`, last `exit`; at most one `error`, just before it. All of it is what the sandbox says of itself. */
export type CodeEvent =
  | {
      readonly kind: "started";
      readonly context: string;
      readonly executionCount: number;
      /** Its interpreter is a new one, since the former ended; why, for a person. */
      readonly restarted?: string;
    }
  | { readonly kind: "stdout" | "stderr"; readonly data: Buffer }
  | { readonly kind: "result"; readonly result: CodeResult }
  | { readonly kind: "error"; readonly error: CodeError }
  | { readonly kind: "exit"; readonly outcome: CodeOutcome };

/** Everything about contexts of one sandbox. CONTEXT_NOT_FOUND for one that is not there (any more). */
export interface CodeContexts {
  create(request: CodeContextRequest, options?: Cancellable): Promise<CodeContext>;
  list(): readonly CodeContext[];
  /** Ends its interpreter, and whatever it started, and begins with a new one. */
  restart(id: string, options?: Cancellable): Promise<CodeContext>;
  /** As from a keyboard: what runs ends with a KeyboardInterrupt, and the names stay. Resolves at once. */
  interrupt(id: string): void;
  remove(id: string): Promise<void>;
  /** Code of one context takes turns. Leaving the loop early interrupts it. */
  run(request: CodeRequest, options?: Cancellable): AsyncIterable<CodeEvent>;
}
