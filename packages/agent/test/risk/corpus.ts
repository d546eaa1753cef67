import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Language, RiskLevel } from "../../src/types.ts";

export interface Snippet {
  readonly name: string;
  readonly kind: "harmless" | "risky" | "obfuscated";
  /** Exactly this. */
  readonly level: RiskLevel;
  /** Some of what is to be found. */
  readonly patterns: readonly string[];
  readonly language: Language;
  readonly code: string;
}

/** What agents and attackers write, by language. */
export const SNIPPETS: readonly Snippet[] = (["python", "javascript", "bash"] as const).flatMap((language) =>
  (read(`${language}.yaml`) as Partial<Snippet>[]).map(
    (snippet) => ({ patterns: [], language, ...snippet }) as Snippet,
  ),
);

/** Language → code that tries to pass for SAFE. */
export const ATTEMPTS = read("attempts.yaml") as Readonly<Record<Language, readonly string[]>>;

function read(file: string): unknown {
  return parse(readFileSync(new URL(`corpus/${file}`, import.meta.url), "utf8"));
}
