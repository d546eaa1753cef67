import { langchainTools } from "agentfense/langchain";
import { createAgent } from "langchain";
import { describeAdapter } from "./support/contract.ts";
import { Script } from "./support/script.ts";
import { ScriptedChatModel } from "./support/scripted-chat-model.ts";

describeAdapter({
  name: "LangChain",
  thrown: "is told to the model",
  checksInput: "the framework",
  converse: async (sandbox, { calls, tools, signal }) => {
    const script = new Script(calls);
    const agent = createAgent({ model: new ScriptedChatModel(script), tools: langchainTools(sandbox, tools) });
    const messages = [{ role: "user" as const, content: "work" }];
    await agent.invoke({ messages }, { recursionLimit: 100, ...(signal && { signal }) });
    return script.outputs;
  },
});
