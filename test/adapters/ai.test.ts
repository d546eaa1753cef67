import { aiTools } from "agentfense/ai";
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { answerTo, USAGE } from "./support/ai-model.ts";
import { describeAdapter } from "./support/contract.ts";
import { Script } from "./support/script.ts";

describeAdapter({
  name: "the AI SDK 7",
  thrown: "is told to the model",
  checksInput: "the tool",
  converse: async (sandbox, { calls, tools, signal }) => {
    const script = new Script(calls);
    const model = new MockLanguageModelV4({
      doGenerate: async ({ prompt }) => {
        const { content, reason } = answerTo(prompt, script);
        return { content, finishReason: { unified: reason, raw: undefined }, usage: USAGE, warnings: [] };
      },
    });
    await generateText({
      model,
      prompt: "work",
      tools: aiTools(sandbox, tools),
      stopWhen: stepCountIs(calls.length + 1),
      ...(signal && { abortSignal: signal }),
    });
    return script.outputs;
  },
});
