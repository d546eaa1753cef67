// `@agentfense/sdk/project`: the policy file of a project, and values of secrets, without anything that talks to a server.

export { nearestName } from "@agentfense/protocol/nearest";
export { InvalidConfigurationError } from "../errors.ts";
export { readSecretValue } from "../secrets/values.ts";
export {
  POLICY_FILE,
  type ProjectPolicy,
  parseProjectPolicy,
  readAgentProfileFile,
  readFoundTextFile,
  readProjectPolicy,
  readTextFile,
  TextFileError,
} from "./read.ts";
export { type AgentProfile, type AgentSecret, bytesOf, cpuQuotaOf } from "./schema.ts";
export {
  DEFAULT_PRESET,
  networkMode,
  protectPolicyFile,
  takenNetwork,
  takenRules,
  withProjectPolicy,
} from "./taking.ts";
export { ProjectPolicyError, parseYaml, YamlError, type YamlText } from "./yaml.ts";
