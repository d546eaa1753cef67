import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");

/** What a test must not do, and what it does instead. */
const CLOCKS: readonly { readonly what: RegExp; readonly instead: string }[] = [
  { what: /\bperformance\.now\(|\bhrtime\b/, instead: "assert order, counts or states; withoutHanging() ends a hang" },
  { what: /\bDate\.now\(\)\s*[-<>]|[-<>]=?\s*Date\.now\(\)/, instead: "assert order, counts or states" },
  { what: /\b(?:durationMs|elapsedMs|tookMs)\)\s*\.toBe(?:Less|Greater)Than(?!\(0\))/, instead: "assert the outcome" },
  // In quotes it is one of those that a test takes the place of.
  { what: /\bsetTimeout\b(?!")/, instead: "wait for the condition with eventually()" },
  { what: /\bvi\s*\.wait(?:For|Until)\b|\bexpect\s*\.poll\b/, instead: "wait with eventually()" },
  { what: /\bAbortSignal\.timeout\(/, instead: "abort when something has happened" },
];

/** What only a hang exceeds may be asked for. */
const ONLY_A_HANG = /\bhang_?ms\b|\b60_000\b/i;

/** Who may all the same, and why. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "test/support/eventually.ts": "the one place where tests wait by the clock",
  "test/e2b/e2b.test.ts": "clients of E2B call it so when they say anew how long a sandbox lives",
  "test/support/held-timeout.ts": "time limits that pass when a test says so",
  "packages/sdk/test/sandbox/events.test.ts": "its clock is vitest's, which only the test moves",
  "packages/agent/test/executors/aio/fake-aio.ts": "a server that has time limits of its own",
  "packages/agent/test/executors/aio/fake-commands.ts": "a server that has time limits of its own",
  "packages/agent/test/browser/inside.test.ts": "a page that gives up what never comes",
  "packages/agent/test/browser/pages.ts": "a page on which something comes late",
  "packages/server/test/isolation/bwrap/boot-clock.test.ts":
    "it is about a clock, and compares readings of it in order",
  "packages/server/test/isolation/session/local-shell.ts": "a shell that must know since when a process runs",
  "packages/server/test/isolation/bwrap/shell-scenarios.ts": "a shell is told since when what it started is meant",
  "packages/server/test/isolation/docker/sessions.test.ts": "a shell is told since when what it started is meant",
  "packages/server/test/isolation/docker/lifecycle.test.ts": "a share of the CPU is one of whatever time it took",
  "packages/server/test/isolation/limits/enforcement.test.ts": "a share of the CPU is one of whatever time it took",
  "test/conformance/security/res/resources.suite.ts": "a share of the CPU is one of whatever time it took",
  "test/conformance/posix/caller.ts": "ends a call that hangs, later where the caller knows that it is long",
};

const files = globSync(["packages/*/test/**/*.ts", "test/**/*.ts"], { cwd: repository }).filter(
  (path) => !path.includes("node_modules/"),
);

function clocksIn(path: string): string[] {
  const lines = readFileSync(join(repository, path), "utf8").split("\n");
  return lines.flatMap((line, index) =>
    CLOCKS.filter(({ what }) => what.test(line) && !ONLY_A_HANG.test(line)).map(
      ({ instead }) => `${path}:${index + 1}: ${line.trim()} (${instead})`,
    ),
  );
}

test("no test compares clocks or sleeps: it waits for a state, and only a hang is too long", () => {
  expect(files.length).toBeGreaterThan(400);
  expect(files.filter((path) => !(path in EXCEPTIONS)).flatMap(clocksIn)).toEqual([]);
});

test("whoever may look at the clock still does", () => {
  expect(Object.keys(EXCEPTIONS).filter((path) => clocksIn(path).length === 0)).toEqual([]);
});
