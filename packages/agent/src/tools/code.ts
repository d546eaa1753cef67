import { Buffer } from "node:buffer";
import { outputText, SHELL, type ToolImage, type ToolResult } from "@agentfense/sdk/tool-kit";
import { z } from "zod";
import { DEFAULT_TIMEOUT_MS } from "../executors/executor.ts";
import type { ExecutionResult, FailureCode, Language, RichOutput } from "../types.ts";
import { type CodeRunner, declareTool } from "./tool.ts";

/** Command lines have a tool of their own. */
const LANGUAGES = ["python", "javascript", "typescript", "bash"] as const satisfies readonly Language[];

export const runCode = declareTool({
  name: "run_code",
  description:
    "Runs code in a sandbox and gives its output and exit code. It starts in /workspace, where the project is; every call is a " +
    "process of its own, unless keep_state is given. There may be no network, and some files cannot be seen or written.",
  input: z.strictObject({
    code: z.string().min(1).max(1_000_000).describe("The whole program"),
    language: z.enum(LANGUAGES).describe("What it is written in"),
    timeout_ms: z
      .int()
      .min(1)
      .max(600_000)
      .optional()
      .describe(`Ended after this many milliseconds; default ${DEFAULT_TIMEOUT_MS}`),
    keep_state: z
      .boolean()
      .optional()
      .describe(
        "Runs it in an interpreter that keeps its names: later code that asks for this has them; the value of the last expression is told",
      ),
  }),
  risk: "assessed",
  effects: SHELL.effects,
  handler: async (
    { code, language, timeout_ms: timeoutMs = DEFAULT_TIMEOUT_MS, keep_state: keepsState = false },
    { manager, maxOutput, signal },
  ) => executionAnswer(await manager.execute({ code, language, timeoutMs, keepsState }, { signal }), maxOutput),
});

const SHELL_TIMEOUT_MS = 60_000;

/** That of the SDK, assessed and confirmed as code is. Where it runs is the manager's. */
export const shell = declareTool({
  ...SHELL,
  input: SHELL.input.omit({ workdir: true }).strict(),
  handler: async ({ command, timeout_ms: timeoutMs = SHELL_TIMEOUT_MS }, { manager, maxOutput, signal }) =>
    executionAnswer(await manager.execute({ code: command, language: "command", timeoutMs }, { signal }), maxOutput),
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

/** Code that did something wrong was run all the same, and its output says what it was. */
const WAS_RUN: ReadonlySet<FailureCode> = new Set<FailureCode>(["EXIT_CODE", "TIMEOUT", "OUT_OF_MEMORY"]);

const MOST_IMAGES = 4;
const LARGEST_IMAGE_CHARACTERS = 4 * 1024 * 1024;

/** What is told of an execution. */
export function executionAnswer(result: ExecutionResult, maxOutput: number): ToolResult {
  const { exitCode, sandboxType, risk, durationMs, timedOut, outOfMemory, truncated, success, errorCode } = result;
  const isError = !success && (errorCode === undefined || !WAS_RUN.has(errorCode));
  const data = { exitCode, sandboxType, risk, durationMs, timedOut, outOfMemory, truncated, success, errorCode };
  const images = imagesIn(result.results ?? []);
  const remark = isError ? (result.error ?? "it was not run") : undefined;
  return {
    text: outputText(result, { timeoutMs: Math.round(durationMs), maxOutput, remark }),
    isError,
    data,
    ...(images.length > 0 && { images }),
  };
}

function imagesIn(results: readonly RichOutput[]): ToolImage[] {
  return results
    .flatMap(({ data }) => data["image/png"] ?? [])
    .filter((base64) => base64.length <= LARGEST_IMAGE_CHARACTERS)
    .slice(0, MOST_IMAGES)
    .map((base64) => ({ data: Buffer.from(base64, "base64"), mimeType: "image/png" }));
}
