import { expect, test } from "vitest";
import { executionAnswer } from "../../src/tools/code.ts";
import type { ExecutionResult } from "../../src/types.ts";

const DONE: ExecutionResult = {
  success: true,
  stdout: "out\n",
  stderr: "",
  exitCode: 0,
  timedOut: false,
  outOfMemory: false,
  truncated: false,
  durationMs: 12.3,
  sandboxType: "fense",
  risk: { level: "LOW", detected: [] },
};

test.each<[string, Partial<ExecutionResult>, string, boolean]>([
  ["output", {}, "out", false],
  ["no output", { stdout: "" }, "(no output)", false],
  ["both streams", { stderr: "err\n" }, "out\n[stderr]\nerr", false],
  ["an exit code", { success: false, exitCode: 3, errorCode: "EXIT_CODE", error: "x" }, "out\n[exit code 3]", false],
  [
    "the end of its time",
    { success: false, exitCode: 137, timedOut: true, durationMs: 1000.4, errorCode: "TIMEOUT" },
    "out\n[ended after 1000 ms: its time was up]",
    false,
  ],
  [
    "the end of memory",
    { success: false, exitCode: 137, outOfMemory: true, errorCode: "OUT_OF_MEMORY" },
    "out\n[it ran out of memory]\n[exit code 137]",
    false,
  ],
  ["lost output", { truncated: true }, "out\n[some output was beyond the limit and is lost]", false],
  ["a no", { success: false, stdout: "", errorCode: "DENIED", error: "nobody agreed" }, "nobody agreed", true],
  ["a refusal", { success: false, stdout: "", errorCode: "REFUSED", error: "not here" }, "not here", true],
  ["an unnamed failure", { success: false, stdout: "" }, "it was not run", true],
])("tells %s", (_what, part, text, isError) => {
  expect(executionAnswer({ ...DONE, ...part }, 1000)).toMatchObject({ text, isError });
});

test("keeps the ends of a long output", () => {
  const stdout = `begin${"x".repeat(1000)}end`;
  expect(executionAnswer({ ...DONE, stdout }, 20).text).toBe("beginxxxxx\n[988 characters left out]\nxxxxxxxend");
});

test("hands on pictures, a few and not too large ones", () => {
  const png = Buffer.from("picture").toString("base64");
  const results = [
    { data: { "text/plain": "x" } },
    { data: { "image/png": "A".repeat(5_000_000) } },
    ...Array.from({ length: 9 }, () => ({ data: { "image/png": png } })),
  ];
  const { images } = executionAnswer({ ...DONE, results }, 1000);
  expect(images?.map(({ data, mimeType }) => [Buffer.from(data).toString(), mimeType])).toEqual(
    Array.from({ length: 4 }, () => ["picture", "image/png"]),
  );
});
