import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { type As, identityOf, reasonAgainst } from "../../../../../test/support/identity.ts";
import { LIVING_SCENARIOS, LONE_SCENARIOS } from "./living-scenarios.ts";
import { SCENARIOS } from "./scenarios.ts";
import { MORE_SCENARIOS } from "./shell-scenarios.ts";

const run = promisify(execFile);
const PROGRAM = new URL("scenario-process.ts", import.meta.url).pathname;

interface Outcome {
  readonly title: string;
  readonly value?: unknown;
  readonly error?: string;
}

for (const as of ["root", "user"] satisfies As[]) {
  const reason = reasonAgainst(as);
  describe.skipIf(reason !== undefined)(`a bwrap box made by ${as}${reason ? ` (skipped: ${reason})` : ""}`, () => {
    const outcomes = new Map<string, Outcome>();

    beforeAll(async () => {
      const { stdout } = await run(process.execPath, [PROGRAM], {
        ...identityOf(as),
        maxBuffer: 1 << 24,
      });
      for (const line of stdout.trim().split("\n")) {
        const outcome = JSON.parse(line) as Outcome;
        outcomes.set(outcome.title, outcome);
      }
    });

    const scenarios = { ...LONE_SCENARIOS, ...SCENARIOS, ...MORE_SCENARIOS, ...LIVING_SCENARIOS };
    for (const [title, { expected }] of Object.entries(scenarios)) {
      test(title, () => {
        const outcome = outcomes.get(title);
        expect(outcome?.error).toBeUndefined();
        expect(outcome?.value).toEqual(expected);
      });
    }

    test("the launcher has nothing to complain about", () => {
      expect(outcomes.get("log")?.value).toEqual([]);
    });
  });
}
