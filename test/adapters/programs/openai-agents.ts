import { Agent, type Model, run } from "@openai/agents";
import { Sandbox } from "agentfense";
import { openaiAgentsTools } from "agentfense/openai-agents";

export async function improve(directory: string, model: Model | string): Promise<string | undefined> {
  await using sandbox = await Sandbox.fromLocal(directory, { preset: "development" });
  const agent = new Agent({ name: "Programmer", model, tools: openaiAgentsTools(sandbox) });
  const { finalOutput } = await run(agent, "Let src/greet.sh greet the moon.");
  await sandbox.apply();
  return finalOutput;
}
