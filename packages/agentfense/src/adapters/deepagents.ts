export { type BackendSandbox, type DeepAgentsBackendOptions, deepAgentsBackend } from "@agentfense/sdk/deepagents";
