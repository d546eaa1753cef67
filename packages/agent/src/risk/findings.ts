import { type DetectedPattern, RISK_LEVELS, type RiskLevel } from "../types.ts";

/** Something that keeps code from being SAFE. */
export interface Finding extends DetectedPattern {
  readonly level: RiskLevel;
}

/** What a rule says about a name, a command or a place. */
export interface Rule {
  /** Without the language: "network". */
  readonly pattern: string;
  readonly level: RiskLevel;
  readonly reason: string;
}

export function rule(level: RiskLevel, pattern: string, reason: string): Rule {
  return { level, pattern, reason };
}

/** The same for each of some names. */
export function each<T>(names: string, what: T): Record<string, T> {
  const all = names.trim().split(/\s+/);
  return Object.fromEntries(all.map((name) => [name, what]));
}

/** Names with their rules, from lines of "LEVEL pattern: reason", each followed by indented lines of names. */
export function ruleTable(text: string): Readonly<Record<string, Rule>> {
  const rows = [...text.matchAll(/^ {2}([A-Z]+) ([\w-]+): (.*)\n((?: {4}.*\n)+)/gm)];
  const entries = rows.flatMap(([, level, pattern, reason, names]) =>
    Object.entries(each(names!, rule(level as RiskLevel, pattern!, reason!))),
  );
  return Object.fromEntries(entries);
}

/** Code in another language, or in text, that this code would run. */
export interface NestedCode {
  readonly code: string;
  readonly language: "python" | "javascript" | "typescript" | "bash";
  /** Where it stands in the outer code; all that is found in it is reported there. */
  readonly line: number;
}

/** Beyond this many, further ones of the same or a lower level add nothing a person would read. */
const MAX_FINDINGS = 200;

export function maxRisk(levels: Iterable<RiskLevel>): RiskLevel {
  let highest = 0;
  for (const level of levels) highest = Math.max(highest, RISK_LEVELS.indexOf(level));
  return RISK_LEVELS[highest]!;
}

/** Collects what is found; each (pattern, reason, line) once, the level being the highest given. */
export class Findings {
  readonly nested: NestedCode[] = [];
  readonly #language: string;
  readonly #byKey = new Map<string, Finding>();
  #level: RiskLevel = "SAFE";

  constructor(language: string) {
    this.#language = language;
  }

  get level(): RiskLevel {
    return this.#level;
  }

  add(rule: Rule, line: number): void {
    const isHigher = RISK_LEVELS.indexOf(rule.level) > RISK_LEVELS.indexOf(this.#level);
    if (isHigher) this.#level = rule.level;
    const pattern = `${this.#language}.${rule.pattern}`;
    const key = `${line}\n${pattern}\n${rule.reason}`;
    const known = this.#byKey.get(key);
    if (known !== undefined && maxRisk([known.level, rule.level]) === known.level) return;
    if (known === undefined && this.#byKey.size >= MAX_FINDINGS && !isHigher) return;
    this.#byKey.set(key, { pattern, level: rule.level, reason: rule.reason, line });
  }

  list(): readonly Finding[] {
    return [...this.#byKey.values()];
  }
}
