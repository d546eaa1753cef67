import { randomBytes } from "node:crypto";
import { IsolationError } from "../backend/isolation-error.ts";
import type { Cancellable, ExecOutcome } from "../exec/api.ts";
import { effectiveTimeout } from "../exec/request.ts";
import { Turns } from "../session/turns.ts";
import type { CodeContext, CodeContextRequest, CodeContexts, CodeEvent, CodeLanguage, CodeRequest } from "./api.ts";
import type { Interpreter } from "./kernel.ts";

const MOST_CONTEXTS = 16;
/** Calls that wait for their turn in one context. */
const MOST_WAITING = 64;
const LONGEST_CODE_BYTES = 4 * 1024 * 1024;

/** What the contexts need of their sandbox. */
export interface ContextsPlace {
  /** The directory as it is in the box. */
  workdir(asked: string | undefined): string;
  /** Throws when the sandbox takes no code now. */
  admit(): void;
  open(request: OpenRequest, options: Cancellable): Promise<Interpreter>;
  onOutcome(outcome: ExecOutcome, timeoutMs: number | undefined): void;
}

export interface OpenRequest {
  readonly language: CodeLanguage;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
}

/** The contexts of one life of a sandbox: they end with it. */
export class Contexts implements CodeContexts {
  readonly #place: ContextsPlace;
  readonly #contexts = new Map<string, Context>();

  constructor(place: ContextsPlace) {
    this.#place = place;
  }

  async create(request: CodeContextRequest, options: Cancellable = {}): Promise<CodeContext> {
    const context = this.#add(request, false);
    try {
      await context.interpreter(options);
    } catch (error) {
      this.#contexts.delete(context.id);
      throw error;
    }
    return context.told();
  }

  list(): readonly CodeContext[] {
    return [...this.#contexts.values()].map((context) => context.told());
  }

  async restart(id: string, options: Cancellable = {}): Promise<CodeContext> {
    const context = this.#find(id);
    this.#place.admit();
    await context.end();
    await context.interpreter(options);
    return context.told();
  }

  interrupt(id: string): void {
    this.#find(id).interrupt();
  }

  async remove(id: string): Promise<void> {
    const context = this.#find(id);
    this.#contexts.delete(id);
    await context.remove();
  }

  async *run(request: CodeRequest, options: Cancellable = {}): AsyncGenerator<CodeEvent, void, undefined> {
    if (Buffer.byteLength(request.code) > LONGEST_CODE_BYTES) {
      throw new IsolationError("INVALID_ARGUMENT", `the code is longer than ${LONGEST_CODE_BYTES} bytes`);
    }
    const timeoutMs = effectiveTimeout(request.timeoutMs, {});
    const { code, env = {} } = request;
    const context =
      request.context === undefined ? this.#ownOf(request.language ?? "python") : this.#find(request.context);
    const language = request.language ?? context.language;
    if (family(language) !== family(context.language)) {
      throw new IsolationError(
        "INVALID_ARGUMENT",
        `the context ${context.id} is one of ${context.language}, not ${language}`,
      );
    }
    const typescript = language === "typescript";
    try {
      yield* context.run({ code, env, typescript, timeoutMs }, options);
    } finally {
      // A language's own whose interpreter could not be started is none.
      if (context.isDefault && !context.hasBegun && context.isIdle) this.#contexts.delete(context.id);
    }
  }

  /** Ends all of them. */
  async close(): Promise<void> {
    const contexts = [...this.#contexts.values()];
    this.#contexts.clear();
    await Promise.all(contexts.map((context) => context.remove()));
  }

  /** JavaScript and TypeScript have one. */
  #ownOf(language: CodeLanguage): Context {
    const own = [...this.#contexts.values()].find(
      (context) => context.isDefault && family(context.language) === family(language),
    );
    return own ?? this.#add({ language }, true);
  }

  #add({ language, env = {}, workdir }: CodeContextRequest, isDefault: boolean): Context {
    this.#place.admit();
    if (this.#contexts.size >= MOST_CONTEXTS) {
      throw new IsolationError("LIMIT_EXCEEDED", `a sandbox has at most ${MOST_CONTEXTS} code contexts`, {
        hint: "remove one first",
      });
    }
    const request = { language, env, workdir: this.#place.workdir(workdir) };
    const context = new Context(request, isDefault, this.#place);
    this.#contexts.set(context.id, context);
    return context;
  }

  #find(id: string): Context {
    const context = this.#contexts.get(id);
    if (context !== undefined) return context;
    throw contextNotFound();
  }
}

function family(language: CodeLanguage): string {
  return language === "typescript" ? "javascript" : language;
}

function contextNotFound(): IsolationError {
  return new IsolationError("CONTEXT_NOT_FOUND", "there is no such code context", {
    hint: "contexts end with the run of their sandbox; make a new one",
  });
}

class Context {
  readonly id: string = `ctx_${randomBytes(16).toString("hex")}`;
  readonly language: CodeLanguage;
  readonly isDefault: boolean;
  readonly #createdAtMs = Date.now();
  readonly #request: OpenRequest;
  readonly #place: ContextsPlace;
  readonly #turns = new Turns();
  #waiting = 0;
  #isRemoved = false;
  #opening: Promise<Interpreter> | undefined;
  #interpreter: Interpreter | undefined;
  #name = "";
  #count = 0;
  /** Why there is no interpreter any more, until the next code was told. */
  #lost: string | undefined;

  constructor(request: OpenRequest, isDefault: boolean, place: ContextsPlace) {
    this.language = request.language;
    this.isDefault = isDefault;
    this.#request = request;
    this.#place = place;
  }

  get hasBegun(): boolean {
    return this.#name !== "";
  }

  get isIdle(): boolean {
    return this.#turns.idle;
  }

  told(): CodeContext {
    return {
      ...{ id: this.id, language: this.language, interpreter: this.#name, workdir: this.#request.workdir },
      ...{ isDefault: this.isDefault, createdAtMs: this.#createdAtMs },
      ...{ executionCount: this.#count, isBusy: !this.#turns.idle },
    };
  }

  async *run(
    request: Parameters<Interpreter["run"]>[0],
    { signal }: Cancellable,
  ): AsyncGenerator<CodeEvent, void, undefined> {
    if (this.#waiting >= MOST_WAITING) {
      throw new IsolationError("LIMIT_EXCEEDED", `${MOST_WAITING} calls wait for this context already`);
    }
    this.#waiting += 1;
    const endTurn = await this.#turns.take(signal).finally(() => {
      this.#waiting -= 1;
    });
    try {
      this.#place.admit();
      const interpreter = await this.interpreter({ signal });
      const restarted = this.#lost;
      this.#lost = undefined;
      for await (const event of interpreter.run(request, { signal })) {
        if (event.kind === "exit") this.#place.onOutcome(event.outcome, request.timeoutMs);
        if (event.kind !== "started") {
          yield event;
          continue;
        }
        this.#count = event.count;
        const started = { kind: "started", context: this.id, executionCount: event.count } as const;
        yield restarted === undefined ? started : { ...started, restarted };
      }
    } finally {
      endTurn();
    }
  }

  /** The one there is, or a new one. */
  async interpreter(options: Cancellable): Promise<Interpreter> {
    if (this.#interpreter !== undefined) return this.#interpreter;
    this.#opening ??= this.#open(options).finally(() => {
      this.#opening = undefined;
    });
    return await this.#opening;
  }

  interrupt(): void {
    this.#interpreter?.interrupt();
  }

  async end(): Promise<void> {
    const interpreter = this.#interpreter ?? (await this.#opening?.catch(() => undefined));
    await interpreter?.close();
    this.#lost = undefined;
  }

  async remove(): Promise<void> {
    this.#isRemoved = true;
    this.#turns.close(contextNotFound);
    await this.end();
  }

  async #open(options: Cancellable): Promise<Interpreter> {
    const interpreter = await this.#place.open(this.#request, options);
    if (this.#isRemoved) {
      await interpreter.close();
      throw contextNotFound();
    }
    this.#interpreter = interpreter;
    this.#name = interpreter.name;
    this.#count = 0;
    void interpreter.ended.then((why) => {
      if (this.#interpreter !== interpreter) return;
      this.#interpreter = undefined;
      this.#lost = why;
    });
    return interpreter;
  }
}
