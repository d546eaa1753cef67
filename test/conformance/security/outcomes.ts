import { Buffer } from "node:buffer";
import { expect } from "vitest";
import type { Answer } from "../../support/operations.ts";
import type { Call, Probe } from "../../support/probe.ts";
import type { TestWorkspace } from "../../support/workspace.ts";

/** What each operation of a table gave, by the operation in words: "mkdirat /work/.env" → "EACCES". */
export type Outcomes = Record<string, string>;

/** Carries out a table of operations on one workspace. Paths begin with the workspace's mount point. */
export async function outcomesOf(probe: Probe, workspace: TestWorkspace, calls: readonly Call[]): Promise<Outcomes> {
  const answers = await probe.batch(calls);
  const outcomes: Outcomes = {};
  for (const [index, call] of calls.entries()) {
    const words = labelOf(call, workspace);
    const answer = answers[index];
    const label = words in outcomes ? `${words} (step ${index + 1})` : words;
    outcomes[label] = answer === undefined ? "no answer" : describeAnswer(answer, workspace);
  }
  return outcomes;
}

/** Fails unless every outcome is one of those allowed; shows all that are not. */
export function expectOnly(outcomes: Outcomes, ...allowed: readonly string[]): void {
  const others = Object.entries(outcomes).filter(([, outcome]) => !allowed.includes(outcome));
  expect(Object.keys(outcomes).length, "the table of operations is empty").toBeGreaterThan(0);
  expect(Object.fromEntries(others), `only ${allowed.join(" or ")} is right`).toEqual({});
}

/** Two workspaces with equal rules, one of which has hidden things in its codebase. */
export type Twins = {
  readonly there: TestWorkspace;
  readonly absent: TestWorkspace;
};

/** The twin rule: one table on both twins gives equal results, in every detail. Returns what both gave. */
export async function outcomesOfTwins(
  probe: Probe,
  twins: Twins,
  table: (workspace: TestWorkspace) => readonly Call[] | Promise<readonly Call[]>,
): Promise<Outcomes> {
  const there = await outcomesOf(probe, twins.there, await table(twins.there));
  const absent = await outcomesOf(probe, twins.absent, await table(twins.absent));
  expect(there, "the twin with hidden entries answers like the one without").toEqual(absent);
  return there;
}

function labelOf([name, ...values]: Call, workspace: TestWorkspace): string {
  const words = values.map((value) => {
    const text = typeof value === "string" ? value : JSON.stringify(value, (_, item) => plain(item));
    return text.replaceAll(workspace.mountPoint, "").replace(/^$/, "/");
  });
  return [name, ...words.map((word) => (word.length > 120 ? `${word.slice(0, 60)}… (${word.length})` : word))].join(
    " ",
  );
}

/** The error, or everything a success brought except what no two mounts share: identities of the probe and clocks. */
function describeAnswer(answer: Answer, workspace: TestWorkspace): string {
  if (answer.errno !== "OK") return answer.errno;
  const { ret, errno, data, stat, ...rest } = answer;
  const details = {
    ...(data === undefined ? {} : { data: Buffer.from(data).toString("latin1") }),
    ...(stat === undefined ? {} : { mode: stat.mode.toString(8), size: stat.size, nlink: stat.nlink }),
    ...rest,
  };
  const text = JSON.stringify(details, (_, item) => plain(item)).replaceAll(workspace.mountPoint, "");
  return text === "{}" ? errno : `${errno} ${ret === 0 ? "" : `${ret} `}${text}`;
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : value;
}
