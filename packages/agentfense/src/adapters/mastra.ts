export { mastraTools } from "@agentfense/sdk/mastra";
