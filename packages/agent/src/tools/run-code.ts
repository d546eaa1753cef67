import { z } from "zod";
import { DEFAULT_TIMEOUT_MS } from "../executors/executor.ts";
import type { ExecutionResult, Language } from "../types.ts";
import { executionAnswer } from "./execution-answer.ts";
import type { CodeRunner } from "./parts.ts";
import { declareTool } from "./tool.ts";

const MAX_TIMEOUT_MS = 600_000;
const MAX_CODE_CHARACTERS = 1_000_000;

/** Command lines have a tool of their own. */
const LANGUAGES = ["python", "javascript", "typescript", "bash"] as const satisfies readonly Language[];

const DESCRIPTION =
  "Runs code in a sandbox and gives its output and exit code. It starts in /workspace, where the project is; every call is a " +
  "process of its own. There may be no network, and some files cannot be seen or written.";

export const runCode = declareTool({
  name: "run_code",
  description: DESCRIPTION,
  input: z.strictObject({
    code: z.string().min(1).max(MAX_CODE_CHARACTERS).describe("The whole program"),
    language: z.enum(LANGUAGES).describe("What it is written in"),
    timeout_ms: z
      .int()
      .min(1)
      .max(MAX_TIMEOUT_MS)
      .optional()
      .describe(`Ended after this many milliseconds; default ${DEFAULT_TIMEOUT_MS}`),
  }),
  risk: "assessed",
  effects: { readOnly: false, destructive: true, openWorld: true },
  handler: async ({ code, language, timeout_ms }, { manager, maxOutput, signal }) => {
    const result = await manager.execute({ code, language, timeoutMs: timeout_ms ?? DEFAULT_TIMEOUT_MS }, { signal });
    return executionAnswer(result, maxOutput);
  },
});

/** The tool `run_code` for programs: what is given and what comes back are values, not text. */
export class RunCodeTool {
  readonly name = runCode.name;
  readonly description = runCode.description;
  readonly inputSchema = runCode.inputSchema;
  readonly #manager: CodeRunner;

  constructor(manager: CodeRunner) {
    this.#manager = manager;
  }

  async execute(
    request: { readonly code: string; readonly language: Language; readonly timeoutMs?: number | undefined },
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ExecutionResult> {
    return await this.#manager.execute(request, options);
  }
}
