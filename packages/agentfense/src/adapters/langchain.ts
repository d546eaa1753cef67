export { langchainTools } from "@agentfense/sdk/langchain";
