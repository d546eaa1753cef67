export { type DescribedSetting, describeConfiguration } from "./describe.ts";
export type { ConfigurationFlag } from "./flags.ts";
export { type LoadedConfiguration, loadConfiguration } from "./load.ts";
export { ConfigurationError } from "./problems.ts";
export type { ServerConfig } from "./schema.ts";
