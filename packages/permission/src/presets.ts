import { parseRules } from "./parse-rules.ts";
import builtIn from "./presets.json" with { type: "json" };
import { type Rule, RuleError } from "./rule.ts";

/** A preset that does not exist, or a name that cannot be registered. */
export class PresetError extends Error {
  override readonly name = "PresetError";
}

export interface PresetSummary {
  readonly name: string;
  readonly description: string;
  /** Comes with the product; cannot be registered over. */
  readonly builtIn: boolean;
}

interface Preset extends PresetSummary {
  rules(): readonly Rule[];
}

/** The presets of this process: those of `presets.json`, and what was registered since. */
const presets = new Map<string, Preset>(
  Object.entries(builtIn).map(([name, { description, rules }]) => [
    name,
    { name, description, builtIn: true, rules: readOnce(rules) },
  ]),
);

/** The rules of a preset. */
export function getPreset(name: string): readonly Rule[] {
  const preset = presets.get(name);
  if (preset !== undefined) return preset.rules();
  throw new PresetError(
    `there is no preset ${JSON.stringify(String(name).slice(0, 100))}; known: ${[...presets.keys()].join(", ")}`,
  );
}

/** All presets, those of the product first. */
export function listPresets(): PresetSummary[] {
  return [...presets.values()].map(({ name, description, builtIn: own }) => ({ name, description, builtIn: own }));
}

/**
 * Adds a preset for the life of the process, or changes one that was added before. The names of the product's own
 * presets are taken: whoever asks for `agent-safe` gets the real one.
 */
export function registerPreset(name: string, rules: readonly Rule[], description = ""): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    throw new PresetError("a preset's name is 1 to 64 letters, digits, dots, dashes and underscores");
  }
  if (presets.get(name)?.builtIn === true) {
    throw new PresetError(`the preset ${name} is built in and cannot be changed; register another name`);
  }
  const parsed = frozen(parseRules(rules));
  presets.set(name, { name, description, builtIn: false, rules: () => parsed });
}

/**
 * A preset's rules, changed: the additions compete with them by the usual order, the overrides win over all of both.
 * Among each other, overrides keep the order of their own priorities.
 */
export function extendPreset(options: {
  readonly base: string;
  readonly additions?: readonly Rule[];
  readonly overrides?: readonly Rule[];
}): Rule[] {
  const others = [...getPreset(options.base), ...parseRules(options.additions ?? [])];
  const overrides = parseRules(options.overrides ?? []);
  const top = others.reduce((highest, { priority = 0 }) => Math.max(highest, priority), 0);
  const steps = [...new Set(overrides.map(({ priority = 0 }) => priority))].sort((a, b) => a - b);
  const raised = overrides.map((rule, index) => {
    const priority = top + 1 + steps.indexOf(rule.priority ?? 0);
    if (!Number.isSafeInteger(priority)) {
      throw new RuleError(others.length + index, rule.pattern, "no priority is left above those of the other rules");
    }
    return { ...rule, priority };
  });
  return [...others, ...raised];
}

/** Most processes use one preset or none: each is read when it is first asked for. */
function readOnce(rules: readonly unknown[]): () => readonly Rule[] {
  let read: readonly Rule[] | undefined;
  return () => {
    read ??= frozen(parseRules(rules));
    return read;
  };
}

function frozen(rules: readonly Rule[]): readonly Rule[] {
  return Object.freeze(rules.map((rule) => Object.freeze(rule)));
}
