import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { RISK_TABLE, UnifiedRiskPolicy } from "../../src/risk/table.ts";
import { LANGUAGES, type Language, RISK_LEVELS, type SecurityMode } from "../../src/types.ts";

const { assess } = UnifiedRiskPolicy;
const MODES: readonly SecurityMode[] = ["PERMISSIVE", "STRICT"];

test("the level and the mode decide where code is run, and whether a person is asked", () => {
  const decisions = RISK_LEVELS.map((level) => [
    level,
    ...MODES.map((mode) => {
      const sandbox = UnifiedRiskPolicy.getRequiredSandbox(level, mode);
      return UnifiedRiskPolicy.needsConfirmation(level, mode) ? `${sandbox}, confirm` : sandbox;
    }),
  ]);
  expect(decisions).toEqual([
    ["SAFE", "subprocess", "subprocess"],
    ["LOW", "fense", "fense"],
    ["MEDIUM", "fense", "fense"],
    ["HIGH", "fense, confirm", "docker, confirm"],
    ["CRITICAL", "docker, confirm", "docker, confirm"],
  ]);
});

test("nothing but SAFE is run in a subprocess", () => {
  for (const mode of MODES) {
    const levels = RISK_LEVELS.filter((level) => RISK_TABLE[mode][level].sandbox === "subprocess");
    expect(levels).toEqual(["SAFE"]);
  }
});

test("an assessment stands for its level", async () => {
  const risk = await assess("import shutil\nshutil.rmtree('x')", "python");
  expect(UnifiedRiskPolicy.getRequiredSandbox(risk, "STRICT")).toBe("docker");
  expect(UnifiedRiskPolicy.getRequiredSandbox(risk, "PERMISSIVE")).toBe("fense");
  expect(UnifiedRiskPolicy.needsConfirmation(risk, "PERMISSIVE")).toBe(true);
});

test("the highest of several levels counts, and SAFE of none", () => {
  expect(UnifiedRiskPolicy.maxRisk(["LOW", "CRITICAL", "MEDIUM"])).toBe("CRITICAL");
  expect(UnifiedRiskPolicy.maxRisk(["SAFE", "LOW"])).toBe("LOW");
  expect(UnifiedRiskPolicy.maxRisk([])).toBe("SAFE");
});

test("what is detected names its line, counted from 1 in the code as it was given", async () => {
  const python = await assess("\uFEFFx = 1\r\ny = '''\r\n\r\n'''\r\nimport socket\r\n\r\neval(x)\r\n", "python");
  expect(python).toEqual({
    level: "HIGH",
    detected: [
      { pattern: "python.network", reason: "uses the network", line: 5 },
      { pattern: "python.dynamic-code", reason: "makes code from data", line: 7 },
      { pattern: "python.dynamic-code", reason: "runs code that is made while running", line: 7 },
    ],
  });
  const bash = await assess("echo 1\necho 2\nrm -r x", "bash");
  expect(bash.detected.map(({ line }) => line)).toEqual([1, 2, 3, 3]);
  const javascript = await assess("const a = 1;\n// ü 𝐞\nconst b = '𝐞'; fetch(a);", "javascript");
  expect(javascript.detected).toEqual([{ pattern: "javascript.network", reason: "uses the network", line: 3 }]);
});

test("a command line is assessed as bash", async () => {
  expect(await assess("rm -rf build", "command")).toEqual(await assess("rm -rf build", "bash"));
});

test("code in code is reported where the outer code runs it", async () => {
  const { level, detected } = await assess("echo 1\n\nbash -c \"python3 -c 'import ctypes'\"", "bash");
  expect(level).toBe("HIGH");
  expect(detected).toContainEqual({
    pattern: "python.native-code",
    reason: "calls native code, past all that Python checks",
    line: 3,
  });
});

test("code in code in code is followed to a limit, and beyond it is not trusted", async () => {
  let code = "echo hi";
  for (let depth = 0; depth < 6; depth++) code = `bash -c '${code.replaceAll("'", `'\\''`)}'`;
  const { level, detected } = await assess(code, "bash");
  expect(level).toBe("HIGH");
  expect(detected.map(({ pattern }) => pattern)).toContain("bash.too-nested");
});

test("what cannot be parsed is never SAFE", async () => {
  const broken: Record<Language, string> = {
    python: "print(1",
    javascript: "console.log(1",
    typescript: "let x: = 1",
    bash: "echo 'x",
    command: "if true; then",
  };
  for (const language of LANGUAGES) {
    const { level, detected } = await assess(broken[language], language);
    expect([language, level]).toEqual([language, "MEDIUM"]);
    expect(detected.some(({ pattern }) => pattern.endsWith(".unparsable"))).toBe(true);
  }
});

test("nothing at all is SAFE", async () => {
  for (const language of LANGUAGES) {
    expect(await assess("", language)).toEqual({ level: "SAFE", detected: [] });
    expect(await assess("\n  \n", language)).toEqual({ level: "SAFE", detected: [] });
  }
});

test.each([
  ["NUL", "echo hi\0"],
  ["a lone surrogate", "echo '\uD800'"],
  ["a turn of direction", "echo '\u202E'"],
  ["an invisible letter", "echo 'a\u200Bb'"],
  ["an escape character", "echo '\x1b[2J'"],
])("%s keeps code from being SAFE in every language", async (_what, code) => {
  for (const language of LANGUAGES) {
    const { level } = await assess(language === "bash" || language === "command" ? code : code.slice(5), language);
    expect(RISK_LEVELS.indexOf(level)).toBeGreaterThanOrEqual(RISK_LEVELS.indexOf("MEDIUM"));
  }
});

test("code beyond the limit of length is not looked at, and not trusted", async () => {
  for (const language of LANGUAGES) {
    const { level, detected } = await assess(" ".repeat(1024 * 1024), language);
    expect(level).toBe("HIGH");
    expect(detected).toEqual([expect.objectContaining({ reason: "is too large to be looked at", line: 1 })]);
  }
});

const LENGTH = 120 * 1024;

/** Texts made to be slow, with the language that finds them hardest. */
const HOSTILE: readonly (readonly [what: string, language: Language, code: string])[] = [
  ["open parentheses", "python", "(".repeat(LENGTH)],
  ["open parentheses", "javascript", "(".repeat(LENGTH)],
  ["open parentheses", "bash", "(".repeat(LENGTH)],
  ["nested parentheses", "typescript", "(".repeat(LENGTH / 2) + ")".repeat(LENGTH / 2)],
  ["open braces", "javascript", "{".repeat(LENGTH)],
  ["substitutions", "bash", "$(".repeat(LENGTH / 2)],
  ["members", "javascript", `a${".b".repeat(LENGTH / 2 - 1)}`],
  ["calls", "python", `f${"()".repeat(LENGTH / 2 - 1)}`],
  ["functions", "bash", `f${"()".repeat(LENGTH / 2 - 1)}`],
  ["sums", "python", `x = 'a'${" + 'a'".repeat(LENGTH / 6 - 2)}`],
  ["pipes", "bash", `sh${" | sh".repeat(LENGTH / 5 - 1)}`],
  ["calls of itself", "bash", `f() { ${"f; ".repeat(LENGTH / 3 - 4)} }`],
  ["names of names", "python", chain(4500, (i) => `a${i} = open if a${i + 1} + a${i + 2} else 1`)],
  ["names of names", "javascript", chain(4500, (i) => `a${i} = process || a${i + 1} + a${i + 2}`)],
  ["variables of variables", "bash", `${chain(4500, (i) => `a${i}=$a${i + 1}$a${i + 2}`)}\n$a0`],
  ["evaluations", "python", `${chain(2000, (i) => `b${i} = b${i + 1}`)}\n${"eval(b0)\n".repeat(2000)}`],
];

test.each(HOSTILE)(
  "an eighth of a megabyte of %s in %s is answered, and not taken for SAFE",
  async (_what, language, code) => {
    expect((await assess(code, language)).level).not.toBe("SAFE");
  },
);

test("a long text holds up nobody else on this thread", async () => {
  let turns = 0;
  const others = setInterval(() => {
    turns += 1;
  }, 5);
  await assess(`f${"()".repeat(LENGTH / 2 - 1)}`, "bash");
  clearInterval(others);
  expect(turns).toBeGreaterThan(10);
});

test("the thread for long texts keeps no process from ending", async () => {
  const policy = JSON.stringify(new URL("../../src/risk/table.ts", import.meta.url).href);
  const program = `const { UnifiedRiskPolicy } = await import(${policy});
    console.log((await UnifiedRiskPolicy.assess("x = 1\\n".repeat(2000), "python")).level);`;
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { timeout: 60_000 });
  expect(stdout).toBe("SAFE\n");
});

function chain(length: number, link: (index: number) => string): string {
  return Array.from({ length }, (_, index) => link(index)).join("\n");
}

test("the memory of the parser does not grow with the number of assessments", async () => {
  const code = "x = [1, 2, (3, {'a': 4})]\n".repeat(300);
  const round = async () => {
    for (let i = 0; i < 8; i++) await assess(code, "python");
    return process.memoryUsage().rss;
  };
  await round();
  const before = await round();
  for (let i = 0; i < 3; i++) await round();
  // Each tree of this text takes a megabyte.
  expect((await round()) - before).toBeLessThan(60 * 1024 * 1024);
});

test("assessments at the same time do not disturb each other", async () => {
  const codes = ["rm -rf /", "echo 1", "curl x | sh", "ls"];
  const alone: unknown[] = [];
  for (const code of codes) alone.push(await assess(code, "bash"));
  expect(await Promise.all(codes.map((code) => assess(code, "bash")))).toEqual(alone);
});
