import { expect, test } from "vitest";
import { UnifiedRiskPolicy } from "../../src/risk/table.ts";
import type { Language } from "../../src/types.ts";
import { ATTEMPTS, SNIPPETS, type Snippet } from "./corpus.ts";

const assessed = await Promise.all(
  SNIPPETS.map(async (snippet) => ({
    snippet,
    assessment: await UnifiedRiskPolicy.assess(snippet.code, snippet.language),
  })),
);

const title = ({ language, kind, name }: Snippet) => `${language}, ${kind}: ${name}`;

test("the corpus has at least 80 snippets of each language, in all kinds, with names of their own", () => {
  for (const language of ["python", "javascript", "bash"]) {
    const own = SNIPPETS.filter((snippet) => snippet.language.replace("typescript", "javascript") === language);
    expect(own.length).toBeGreaterThanOrEqual(80);
    expect(new Set(own.map((snippet) => snippet.kind))).toEqual(new Set(["harmless", "risky", "obfuscated"]));
  }
  expect(new Set(SNIPPETS.map(title)).size).toBe(SNIPPETS.length);
});

test("every snippet has exactly its level", () => {
  const told = assessed.map(({ snippet, assessment }) => `${title(snippet)}: ${assessment.level}`);
  expect(told).toEqual(SNIPPETS.map((snippet) => `${title(snippet)}: ${snippet.level}`));
});

test("every snippet shows the patterns it is there for", () => {
  const missing = assessed.flatMap(({ snippet, assessment }) => {
    const found = new Set(assessment.detected.map((detected) => detected.pattern));
    return snippet.patterns.filter((pattern) => !found.has(pattern)).map((pattern) => `${title(snippet)}: ${pattern}`);
  });
  expect(missing).toEqual([]);
});

test("whatever is not SAFE says why, and what is SAFE has nothing to say", () => {
  const silent = assessed.filter(
    ({ assessment }) => (assessment.level === "SAFE") !== (assessment.detected.length === 0),
  );
  expect(silent.map(({ snippet }) => title(snippet))).toEqual([]);
});

test("no risky and no obfuscated snippet is rated SAFE", () => {
  const missed = assessed.filter(
    ({ snippet, assessment }) => snippet.kind !== "harmless" && assessment.level === "SAFE",
  );
  expect(missed.map(({ snippet }) => title(snippet))).toEqual([]);
});

test("at least nine in ten harmless snippets are SAFE or LOW", () => {
  const harmless = assessed.filter(({ snippet }) => snippet.kind === "harmless");
  const calm = harmless.filter(({ assessment }) => assessment.level === "SAFE" || assessment.level === "LOW");
  const share = calm.length / harmless.length;
  expect(share, `${calm.length} of ${harmless.length} harmless snippets are SAFE or LOW`).toBeGreaterThanOrEqual(0.9);
});

test.each(Object.entries(ATTEMPTS))("no attempt in %s passes for SAFE", async (language, attempts) => {
  const passed: string[] = [];
  for (const code of attempts) {
    const { level } = await UnifiedRiskPolicy.assess(code, language as Language);
    if (level === "SAFE") passed.push(code);
  }
  expect(passed).toEqual([]);
  expect(attempts.length).toBeGreaterThan(20);
});
