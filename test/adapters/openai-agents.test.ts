import { Agent, Runner } from "@openai/agents";
import { openaiAgentsTools } from "agentfense/openai-agents";
import { describeAdapter } from "./support/contract.ts";
import { Script } from "./support/script.ts";
import { ScriptedModel } from "./support/scripted-openai-model.ts";

describeAdapter({
  name: "the OpenAI Agents SDK",
  thrown: "ends the run",
  checksInput: "the tool",
  converse: async (sandbox, { calls, tools, signal }) => {
    const script = new Script(calls);
    const model = new ScriptedModel(script);
    const agent = new Agent({ name: "worker", model, tools: openaiAgentsTools(sandbox, tools) });
    const runner = new Runner({ tracingDisabled: true });
    await runner.run(agent, "work", { maxTurns: calls.length + 1, ...(signal && { signal }) });
    return script.outputs;
  },
});
