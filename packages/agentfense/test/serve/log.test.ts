import { expect, test } from "vitest";
import { createLog, type LogLevel } from "../../src/serve/log.ts";

const clock = () => new Date("2026-02-03T10:15:30.000Z");

function logged(format: "text" | "json", level: LogLevel, entries: readonly object[]): string {
  let written = "";
  const log = createLog({ format, level, clock, write: (line) => (written += line) });
  for (const entry of entries) log(entry);
  return written;
}

test("an entry is one line of JSON", () => {
  expect(logged("json", "info", [{ level: "warn", message: "denied\n", path: "/a\u001b[31m", count: 2n }])).toBe(
    '{"level":"warn","time":"2026-02-03T10:15:30.000Z","msg":"denied\\n","path":"/a\\u001b[31m","count":"2"}\n',
  );
});

test("what JSON does not escape and a terminal obeys is escaped all the same", () => {
  const line = logged("json", "info", [{ message: "a\u009b2J\u0085b", path: "\u202e\u2028\u007f" }]);
  expect(line).toContain('"msg":"a\\u009b2J\\u0085b","path":"\\u202e\\u2028\\u007f"');
  expect(JSON.parse(line)).toMatchObject({ msg: "a\u009b2J\u0085b", path: "\u202e\u2028\u007f" });
});

test("an entry is one line of text, whatever is in it", () => {
  expect(
    logged("text", "info", [{ level: "error", msg: "it\nfailed", path: "/a b\u001b[31m\u202e", code: 7, none: "" }]),
  ).toBe('2026-02-03T10:15:30.000Z ERROR it\\nfailed path="/a b\\u001b[31m\\u{202e}" code=7\n');
});

test("its own time is kept", () => {
  expect(logged("text", "info", [{ time: "2026-01-01T00:00:00Z", msg: "x" }])).toBe("2026-01-01T00:00:00Z INFO  x\n");
});

test("what is below the level is left out", () => {
  const entries = ["debug", "info", "warn", "error"].map((level) => ({ level, message: level }));
  expect(logged("text", "warn", entries).match(/WARN|ERROR|INFO|DEBUG/g)).toEqual(["WARN", "ERROR"]);
  expect(logged("text", "fatal", entries)).toBe("");
});
