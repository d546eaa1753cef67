import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { filesOf, type Outcome, recordedOutput, runApart, runBeside } from "./programs.ts";

// Every program that README and docs show, as a reader would run it.

describe("programs without a server", () => {
  test.for(filesOf("local").programs)("%s", async (program) => {
    expectSuccess(program, await runBeside(program, {}));
  });
});

describe("programs against a server", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test.for(filesOf("server").programs)("%s", async (program) => {
    expectSuccess(program, await runBeside(program, environmentOf(server)));
  });
});

const reason = process.geteuid?.() === 0 ? "" : " (skipped: a network and a /var/lib of its own need root)";

describe.skipIf(reason !== "")(`programs that start a server themselves${reason}`, () => {
  test.for(filesOf("apart").programs)("%s", async (program) => {
    expectSuccess(program, await runApart(program));
  });
});

function environmentOf({ grpc, http }: TestServer): Record<string, string> {
  return { AGENTFENSE_ENDPOINT: `http://${grpc}`, REST_ENDPOINT: http };
}

function expectSuccess(program: string, outcome: Outcome): void {
  expect(outcome.code, `${outcome.stdout}${outcome.stderr}`).toBe(0);
  const recorded = recordedOutput(program);
  if (recorded === undefined) return;
  // "…" stands for what differs from run to run: ids, times.
  if (recorded.includes("…")) expect(outcome.stdout).toMatch(patternOf(recorded));
  else expect(outcome.stdout).toBe(recorded);
}

function patternOf(recorded: string): RegExp {
  return new RegExp(`^${recorded.split("…").map(RegExp.escape).join("[^\\n]*")}$`);
}
