import { aiTools } from "agentfense/ai";
import { generateText, stepCountIs, type ToolSet } from "ai-v6";
import { MockLanguageModelV3 } from "ai-v6/test";
import { vi } from "vitest";
import { answerTo, USAGE } from "./support/ai-model.ts";
import { describeAdapter } from "./support/contract.ts";
import { Script } from "./support/script.ts";

vi.mock("ai", () => import("ai-v6"));

describeAdapter({
  name: "the AI SDK 6",
  thrown: "is told to the model",
  checksInput: "the tool",
  converse: async (sandbox, { calls, tools, signal }) => {
    const script = new Script(calls);
    const model = new MockLanguageModelV3({
      doGenerate: async ({ prompt }) => {
        const { content, reason } = answerTo(prompt, script);
        return { content, finishReason: { unified: reason, raw: undefined }, usage: USAGE, warnings: [] };
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
