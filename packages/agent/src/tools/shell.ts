import { z } from "zod";
import { executionAnswer } from "./execution-answer.ts";
import { declareTool } from "./tool.ts";

const DEFAULT_TIMEOUT_MS = 60_000;
const MAX_TIMEOUT_MS = 600_000;
const MAX_COMMAND_CHARACTERS = 100_000;

export const shell = declareTool({
  name: "shell",
  description:
    "Runs a command line in the shell of the sandbox and gives its output and exit code. It starts in /workspace, where the " +
    "project is; every call is a shell of its own. There may be no network, and some files cannot be seen or written.",
  input: z.strictObject({
    command: z.string().min(1).max(MAX_COMMAND_CHARACTERS).describe("The command line"),
    timeout_ms: z
      .int()
      .min(1)
      .max(MAX_TIMEOUT_MS)
      .optional()
      .describe(`Ended after this many milliseconds; default ${DEFAULT_TIMEOUT_MS}`),
  }),
  risk: "assessed",
  effects: { readOnly: false, destructive: true, openWorld: true },
  handler: async ({ command, timeout_ms: timeoutMs = DEFAULT_TIMEOUT_MS }, { manager, maxOutput, signal }) =>
    executionAnswer(await manager.execute({ code: command, language: "command", timeoutMs }, { signal }), maxOutput),
});
