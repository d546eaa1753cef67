import { aiTools } from "agentfense/ai";
import { generateText, stepCountIs, type ToolSet } from "ai-v5";
import { MockLanguageModelV2 } from "ai-v5/test";
import { vi } from "vitest";
import { answerTo } from "./support/ai-model.ts";
import { describeAdapter } from "./support/contract.ts";
import { Script } from "./support/script.ts";

vi.mock("ai", () => import("ai-v5"));

const USAGE = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };

describeAdapter({
  name: "the AI SDK 5",
  thrown: "is told to the model",
  checksInput: "the tool",
  converse: async (sandbox, { calls, tools, signal }) => {
    const script = new Script(calls);
    const model = new MockLanguageModelV2({
      doGenerate: async ({ prompt }) => {
        const { content, reason } = answerTo(prompt, script);
        return { content, finishReason: reason, usage: USAGE, warnings: [] };
      },
    });
    await generateText({
      model,
      prompt: "work",
      tools: aiTools(sandbox, tools) as unknown as ToolSet,
      stopWhen: stepCountIs(calls.length + 1),
      ...(signal && { abortSignal: signal }),
    });
    return script.outputs;
  },
});
