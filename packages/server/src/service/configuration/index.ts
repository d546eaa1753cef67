export { ConfigurationError, type ConfigurationFlag } from "./keys.ts";
export {
  type DescribedSetting,
  describeConfiguration,
  type LoadedConfiguration,
  loadConfiguration,
} from "./load.ts";
export type { ServerConfig } from "./schema.ts";
