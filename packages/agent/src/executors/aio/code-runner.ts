import { z } from "zod";
import { ExecutorError } from "../../errors.ts";
import type { ExecutionOutcome, RichOutput } from "../../types.ts";
import { limitedText } from "../collected-output.ts";
import type { AioApi } from "./api.ts";
import type { Run, Runner } from "./runner.ts";

const output = z.object({ data: z.record(z.string(), z.unknown()).nullish() });
const executed = z.object({
  status: z.string(),
  outputs: z.array(output).nullish(),
  stdout: z.string().nullish(),
  stderr: z.string().nullish(),
  exit_code: z.number().nullish(),
  traceback: z.union([z.string(), z.array(z.string())]).nullish(),
});

const LANGUAGES: Readonly<Record<string, string>> = { python3: "python", node: "javascript" };

/** Runs code by `/v1/code/execute`, where there are no commands at all. */
export class CodeRunner implements Runner {
  readonly name = "code";
  readonly #api: AioApi;
  readonly #workspace: string;

  constructor({ api, workspace }: { readonly api: AioApi; readonly workspace: string }) {
    this.#api = api;
    this.#workspace = workspace;
  }

  async run({ plan, env, timeoutMs, signal }: Run): Promise<ExecutionOutcome> {
    const language = plan.kind === "program" ? LANGUAGES[plan.argv[0]] : undefined;
    if (plan.kind !== "program" || language === undefined) {
      throw new ExecutorError("REFUSED", `${this.#api.name} runs Python and JavaScript, and no commands`);
    }
    if (Object.keys(env).length > 0) throw new ExecutorError("REFUSED", `${this.#api.name} takes no variables`);
    const startedAt = performance.now();
    const body = { language, code: plan.stdin, timeout: Math.ceil(timeoutMs / 1000), cwd: this.#workspace };
    const answer = await this.#api.post("v1/code/execute", body, executed, { signal, timeoutMs: timeoutMs + 15_000 });
    const timedOut = answer.status === "timeout";
    const stdout = limitedText(Buffer.from(answer.stdout ?? ""));
    const traceback = [answer.traceback ?? ""].flat().join("\n");
    const stderr = limitedText(Buffer.from(answer.stderr || traceback));
    const results = resultsIn(answer.outputs ?? []);
    const isGood = answer.status === "ok" || answer.status === "completed" || answer.status === "success";
    return {
      stdout: stdout.text,
      stderr: stderr.text,
      exitCode: answer.exit_code ?? (isGood ? 0 : timedOut ? 137 : 1),
      timedOut,
      outOfMemory: false,
      truncated: stdout.isTruncated || stderr.isTruncated,
      durationMs: performance.now() - startedAt,
      ...(results.length === 0 ? {} : { results }),
    };
  }

  async close(): Promise<void> {}
}

function resultsIn(outputs: readonly z.output<typeof output>[]): RichOutput[] {
  return outputs.flatMap(({ data }) => {
    const texts = Object.entries(data ?? {}).filter((entry): entry is [string, string] => typeof entry[1] === "string");
    return texts.length === 0 ? [] : [{ data: Object.fromEntries(texts) }];
  });
}
