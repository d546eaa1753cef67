import { Agent, type AgentConfig } from "@mastra/core/agent";
import { Sandbox } from "agentfense";
import { mastraTools } from "agentfense/mastra";

export async function improve(directory: string, model: AgentConfig["model"]): Promise<string> {
  await using sandbox = await Sandbox.fromLocal(directory, { preset: "development" });
  const tools = mastraTools(sandbox);
  const agent = new Agent({ id: "programmer", name: "Programmer", instructions: "You write programs.", model, tools });
  const { text } = await agent.generate("Let src/greet.sh greet the moon.", { maxSteps: 20 });
  await sandbox.apply();
  return text;
}
