// `@agentfense/sdk/project`: the policy file of a project, and values of secrets, without anything that talks to a server.

export { nearestName } from "@agentfense/protocol/nearest";
export { InvalidConfigurationError } from "../errors.ts";
export { readSecretValue } from "../secrets/values.ts";
export { ProjectPolicyError, YamlError } from "./errors.ts";
export { bytesOf, cpuQuotaOf } from "./quantities.ts";
export {
  POLICY_FILE,
  type ProjectPolicy,
  parseProjectPolicy,
  readAgentProfileFile,
  readProjectPolicy,
} from "./read.ts";
export type { AgentProfile, AgentSecret } from "./schema.ts";
export {
  DEFAULT_PRESET,
  networkMode,
  protectPolicyFile,
  takenNetwork,
  takenRules,
  withProjectPolicy,
} from "./taking.ts";
export { readFoundTextFile, readTextFile, TextFileError } from "./text-file.ts";
export { parseYaml, type YamlText } from "./yaml.ts";
