export { openaiAgentsTools } from "@agentfense/sdk/openai-agents";
