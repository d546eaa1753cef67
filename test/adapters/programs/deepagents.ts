import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { Sandbox } from "agentfense";
import { deepAgentsBackend } from "agentfense/deepagents";
import { createDeepAgent } from "deepagents";

export async function improve(directory: string, model: BaseChatModel): Promise<string | undefined> {
  await using sandbox = await Sandbox.fromLocal(directory, { preset: "development" });
  const agent = createDeepAgent({ model, backend: deepAgentsBackend(sandbox) });
  const { messages } = await agent.invoke({ messages: "Let src/greet.sh greet the moon." });
  await sandbox.apply();
  return messages.at(-1)?.text;
}
