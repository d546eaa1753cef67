import { CONFIGURATION_KEYS, ROOT_SECTION, VARIABLE_PREFIX } from "./keys.ts";
import { suggestion } from "./problems.ts";
import type { Setting, Settings } from "./settings.ts";

/**
 * The settings in the environment. A variable whose first word is a section and which names no key of it is a mistake; all
 * others that begin with AGENTFENSE_ (of clients, of tests) are none of our business.
 */
export function readEnvironment(environment: Readonly<Record<string, string | undefined>>): Settings {
  const byVariable = new Map([...CONFIGURATION_KEYS.values()].map((key) => [key.variable, key]));
  const sections = [...ROOT_SECTION.members.keys()].map((name) => `${VARIABLE_PREFIX}${name.toUpperCase()}_`);
  const settings: Setting[] = [];
  const problems: string[] = [];
  for (const [variable, value] of Object.entries(environment)) {
    if (value === undefined || !variable.startsWith(VARIABLE_PREFIX)) continue;
    const key = byVariable.get(variable);
    if (key !== undefined) {
      settings.push({ name: key.name, value: key.kind.fromText(value), origin: `environment ${variable}` });
    } else if (sections.some((section) => variable.startsWith(section))) {
      problems.push(`environment: unknown setting ${variable}${suggestion(variable, byVariable.keys())}`);
    }
  }
  return { settings, problems };
}
