import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { Sandbox } from "agentfense";
import { expect } from "vitest";
import { eventually } from "../support/eventually.ts";
import type { World } from "../support/scenes.ts";
import type { Case, Step } from "./case.ts";
import { mismatch } from "./matching.ts";

export interface Ground {
  readonly world: World;
  /** Holds the case's files. */
  readonly directory: string;
  open(options: Readonly<Record<string, unknown>>): Promise<Sandbox>;
}

/** Carries out one case; the first thing that is not as it should be fails the test. */
export async function runCase(one: Case, ground: Ground): Promise<void> {
  if (one.opening !== undefined) {
    const opened = ground.open(one.options ?? {}).then((sandbox) => sandbox.destroy());
    return compareError(await failureOf(opened), one.opening.error, "opening");
  }
  await using sandbox = await ground.open(one.options ?? {});
  const kept = new Map<string, unknown>();
  for (const [index, step] of (one.steps ?? []).entries()) {
    if (step.except?.[ground.world] !== undefined) continue;
    await runStep(step, `step ${index + 1} (${step.do})`, sandbox, kept, ground);
  }
}

async function runStep(
  step: Step,
  place: string,
  sandbox: Sandbox,
  kept: Map<string, unknown>,
  ground: Ground,
): Promise<void> {
  if (step.do === "eventually") return await waitFor(step, place, sandbox);
  const work = (): Promise<unknown> =>
    step.do === "origin"
      ? Promise.resolve(readFiles(ground.directory))
      : call(step.on === undefined ? sandbox : kept.get(step.on), step.do, step.args ?? []);
  if (step.error !== undefined) return compareError(await failureOf(work()), step.error, place);
  const result = await work();
  if (step.as !== undefined) kept.set(step.as, result);
  if (step.do === "origin") expect(result, place).toEqual(step.expect);
  else if (step.expect !== undefined) expect(mismatch(result, step.expect), place).toBeUndefined();
}

/** "files.readFile" of a target; what comes piece by piece is collected. */
async function call(target: unknown, method: string, args: readonly unknown[]): Promise<unknown> {
  const names = method.split(".");
  const owner = names.slice(0, -1).reduce((at, name) => (at as Record<string, unknown>)[name], target);
  const member = (owner as Record<string, unknown>)[names.at(-1)!];
  if (member === undefined) throw new TypeError(`there is no ${method}`);
  const result: unknown = typeof member === "function" ? await member.apply(owner, args) : member;
  // A handle can be iterated too, but is kept for the steps to come.
  return isIterable(result) && !("wait" in result) ? await collect(result) : result;
}

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

async function collect(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const collected: unknown[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

/** For what is told a moment later: asks until the answer is as expected. */
async function waitFor({ args = [], expect: expected }: Step, place: string, sandbox: Sandbox): Promise<void> {
  const [method, ...rest] = args as readonly [string, ...unknown[]];
  await eventually(async () => {
    const problem = mismatch(await call(sandbox, method, rest), expected);
    expect(problem, place).toBeUndefined();
  });
}

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

function compareError(error: unknown, expected: unknown, place: string): void {
  expect(error, `${place} should fail`).toBeInstanceOf(Error);
  expect(mismatch(error, expected, "error"), place).toBeUndefined();
}

function readFiles(directory: string): Record<string, string> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map((entry) => relative(directory, join(entry.parentPath, entry.name))).sort();
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(directory, path), "utf8")]));
}
