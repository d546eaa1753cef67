export { aiTools } from "@agentfense/sdk/ai";
