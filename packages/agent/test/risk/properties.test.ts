import fc from "fast-check";
import { expect, test } from "vitest";
import { UnifiedRiskPolicy } from "../../src/risk/table.ts";
import { LANGUAGES, type Language, RISK_LEVELS, type RiskLevel } from "../../src/types.ts";
import { SNIPPETS, type Snippet } from "./corpus.ts";

const { assess } = UnifiedRiskPolicy;
const rank = (level: RiskLevel): number => RISK_LEVELS.indexOf(level);
const RUNS = 60;

const language = fc.constantFrom(...LANGUAGES);
const snippetOf = (kinds: readonly Snippet["kind"][], of: readonly Language[]) =>
  fc.constantFrom(...SNIPPETS.filter((snippet) => kinds.includes(snippet.kind) && of.includes(snippet.language)));

/** Counts for the text around it too, or at the beginning only: what does not parse, and an encoding. */
const isAlone = ({ patterns }: Snippet): boolean =>
  patterns.some((pattern) => /\.(?:unparsable|encoding)$/.test(pattern));

/** Pieces that meet in programs, so that some of the random texts parse. */
const pieces = fc.array(
  fc.oneof(
    fc.constantFrom(
      ...[
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "'",
        '"',
        "`",
        "$",
        "$(",
        "\\",
        "\n",
        "\n  ",
        ";",
        ":",
        "=",
        "+",
        ".",
        ",",
        "|",
        "#",
        "//",
      ],
      ...[
        "import os",
        "from x import *",
        "def f(a=1):",
        "class A:",
        "eval",
        "f'{",
        "match x:\n case A(b=c)",
        "lambda:",
        "@x\n",
      ],
      ...[
        "require('fs')",
        "import(",
        "=>",
        "async ",
        "`${",
        "this",
        "let [a] = b",
        "/x/g",
        "<!--",
        "<T>",
        "as any",
        "#!/x",
      ],
      ...[
        "rm -rf ",
        "<<EOF\n",
        "EOF",
        "<<<",
        "$((",
        "))",
        "[[ ",
        " ]]",
        "case x in",
        "$" + "{x@P}",
        "if ",
        "then ",
        "fi",
        "{1..3}",
      ],
    ),
    fc.string({ maxLength: 6, unit: "binary" }),
    fc.string({ maxLength: 6, unit: "grapheme" }),
  ),
  { maxLength: 24 },
);

test("whatever the text is, there is an answer, and always the same one", async () => {
  await fc.assert(
    fc.asyncProperty(pieces, language, async (parts, of) => {
      const code = parts.join("");
      const first = await assess(code, of);
      expect(await assess(code, of)).toEqual(first);
      expect(first.level === "SAFE").toBe(first.detected.length === 0);
      const lines = code.split(/\r\n|\r|\n/).length;
      for (const { line } of first.detected) expect(line >= 1 && line <= lines).toBe(true);
    }),
    { numRuns: 4 * RUNS },
  );
});

test("random bytes have an answer too", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), language, async (bytes, of) => {
      const { level } = await assess(Buffer.from(bytes).toString("latin1"), of);
      expect(RISK_LEVELS).toContain(level);
    }),
    { numRuns: 2 * RUNS },
  );
});

test.each([["python"], ["javascript"], ["bash"]] as const)(
  "a risky statement in harmless %s never lowers the level",
  async (of) => {
    await fc.assert(
      fc.asyncProperty(
        snippetOf(["harmless"], [of]),
        snippetOf(["risky", "obfuscated"], [of]).filter((snippet) => !isAlone(snippet)),
        fc.boolean(),
        async (harmless, risky, isFirst) => {
          const code = isFirst ? `${risky.code}\n${harmless.code}` : `${harmless.code}\n${risky.code}`;
          const { level } = await assess(code, of);
          expect(rank(level)).toBeGreaterThanOrEqual(
            Math.max(rank(harmless.level), Math.min(rank(risky.level), rank("HIGH"))),
          );
        },
      ),
      { numRuns: RUNS },
    );
  },
);

const WRAPPERS: Readonly<Record<"python" | "javascript" | "bash", readonly ((code: string) => string)[]>> = {
  python: [
    (code) => `def f():\n${indented(code)}\nf()`,
    (code) => `if 1:\n${indented(code)}`,
    (code) => `try:\n${indented(code)}\nexcept Exception:\n    pass`,
    (code) => `for i in range(1):\n${indented(code)}`,
    (code) => `class A:\n${indented(code)}`,
  ],
  javascript: [
    (code) => `async function f() {\n${code}\n}\nf();`,
    (code) => `if (1) {\n${code}\n}`,
    (code) => `try {\n${code}\n} catch {}`,
    (code) => `for (const i of [1]) {\n${code}\n}`,
    (code) => `const f = async () => {\n${code}\n};`,
  ],
  bash: [
    (code) => `f() {\n${code}\n}\nf`,
    (code) => `if true; then\n${code}\nfi`,
    (code) => `for i in 1; do\n${code}\ndone`,
    (code) => `(\n${code}\n)`,
    (code) => `{\n${code}\n}`,
  ],
};

test.each([["python"], ["javascript"], ["bash"]] as const)("risky %s is not SAFE inside of anything", async (of) => {
  await fc.assert(
    fc.asyncProperty(
      snippetOf(["risky", "obfuscated"], [of]).filter((snippet) => !isAlone(snippet)),
      fc.array(fc.constantFrom(...WRAPPERS[of]), { minLength: 1, maxLength: 3 }),
      async (risky, wrappers) => {
        const code = wrappers.reduce((inner, wrap) => wrap(inner), risky.code);
        expect((await assess(code, of)).level).not.toBe("SAFE");
      },
    ),
    { numRuns: RUNS },
  );
});

function indented(code: string): string {
  return code
    .split(/\r\n|\r|\n/)
    .map((line) => `    ${line}`)
    .join("\n");
}
