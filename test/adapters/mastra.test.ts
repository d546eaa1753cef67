import { Agent } from "@mastra/core/agent";
import { mastraTools } from "agentfense/mastra";
import { MockLanguageModelV4 } from "ai/test";
import { answerTo, USAGE } from "./support/ai-model.ts";
import { describeAdapter } from "./support/contract.ts";
import { Script } from "./support/script.ts";

describeAdapter({
  name: "Mastra",
  thrown: "is told to the model",
  checksInput: "the framework",
  converse: async (sandbox, { calls, tools, signal }) => {
    const script = new Script(calls);
    const model = new MockLanguageModelV4({
      doGenerate: async ({ prompt }) => {
        const { content, reason } = answerTo(prompt, script);
        return { content, finishReason: { unified: reason, raw: undefined }, usage: USAGE, warnings: [] };
      },
    });
    const agent = new Agent({
      id: "worker",
      name: "worker",
      instructions: "work",
      model,
      tools: mastraTools(sandbox, tools),
    });
    await agent.generate("work", { maxSteps: calls.length + 1, ...(signal && { abortSignal: signal }) });
    return script.outputs;
  },
});
