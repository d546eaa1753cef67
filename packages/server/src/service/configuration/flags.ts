import { CONFIGURATION_KEYS } from "./keys.ts";
import { suggestion } from "./problems.ts";
import type { Setting, Settings } from "./settings.ts";

/** A setting given on the command line. */
export interface ConfigurationFlag {
  /** As the user knows it: "--grpc-addr". */
  readonly flag: string;
  /** "server.grpc_addr" */
  readonly name: string;
  readonly value: string;
}

export function readFlags(flags: readonly ConfigurationFlag[]): Settings {
  const settings: Setting[] = [];
  const problems: string[] = [];
  for (const { flag, name, value } of flags) {
    const key = CONFIGURATION_KEYS.get(name);
    if (key === undefined) problems.push(`${flag}: unknown key ${name}${suggestion(name, CONFIGURATION_KEYS.keys())}`);
    else settings.push({ name, value: key.kind.fromText(value), origin: `flag ${flag}` });
  }
  return { settings, problems };
}
