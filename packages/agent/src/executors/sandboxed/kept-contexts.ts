import { type CodeContext, type CodeExecution, type Sandbox, SandboxError } from "@agentfense/sdk";
import type { ExecutionOutcome, Language } from "../../types.ts";
import { limitedText } from "../collected-output.ts";
import type { ExecutionTask } from "../executor.ts";

type ContextLanguage = Exclude<Language, "command">;

/** The contexts of one executor in one sandbox: others who use the sandbox have their own names. */
export class KeptContexts implements AsyncDisposable {
  readonly #contexts = new Map<ContextLanguage, Promise<CodeContext>>();

  async run(
    sandbox: Sandbox,
    { code, language, env }: ExecutionTask,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<ExecutionOutcome> {
    if (language === "command") throw new TypeError("a command has no context");
    for (let again = true; ; again = false) {
      const context = await this.#contextOf(sandbox, language === "typescript" ? "javascript" : language);
      try {
        return outcomeOf(await context.run(code, { language, env, timeoutMs, signal }));
      } catch (error) {
        // The sandbox was stopped meanwhile: its contexts are gone, and with them the names.
        if (!again || !(error instanceof SandboxError) || error.code !== "CONTEXT_NOT_FOUND") throw error;
        this.#contexts.delete(language === "typescript" ? "javascript" : language);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const contexts = await Promise.allSettled(this.#contexts.values());
    this.#contexts.clear();
    // What is gone already, with its sandbox or its server, need not be removed.
    await Promise.allSettled(contexts.map(async (made) => made.status === "fulfilled" && (await made.value.remove())));
  }

  #contextOf(sandbox: Sandbox, language: ContextLanguage): Promise<CodeContext> {
    const known = this.#contexts.get(language);
    if (known !== undefined) return known;
    const making = sandbox.createCodeContext({ language });
    this.#contexts.set(language, making);
    making.catch(() => this.#contexts.delete(language));
    return making;
  }
}

/** As a console shows it: what was printed, then the values; a traceback is an error's. */
function outcomeOf(execution: CodeExecution): ExecutionOutcome {
  const { results, error, restarted, exitCode, timedOut, outOfMemory, truncated, durationMs } = execution;
  const values = results.map(({ text }) => text).filter((text) => text !== undefined);
  const lost = restarted === undefined ? [] : [`[the names of earlier code are gone: ${restarted}]`];
  const stdout = limitedText(Buffer.from(joined([execution.stdout, ...values])));
  const stderr = limitedText(Buffer.from(joined([...lost, execution.stderr, error?.traceback ?? ""])));
  return {
    ...{ stdout: stdout.text, stderr: stderr.text, exitCode, timedOut, outOfMemory, durationMs },
    truncated: truncated || stdout.isTruncated || stderr.isTruncated,
    ...(results.length === 0 ? {} : { results: results.map(({ data }) => ({ data })) }),
  };
}

function joined(texts: readonly string[]): string {
  const told = texts.filter((text) => text !== "");
  return told.map((text, index) => (index < told.length - 1 && !text.endsWith("\n") ? `${text}\n` : text)).join("");
}
