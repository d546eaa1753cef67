import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { World } from "../support/scenes.ts";

/** Where cases are run: the worlds of this language, and the Python SDK on a server (python/tests/contract). */
type Place = World | "python";
const PLACES: readonly Place[] = ["embedded", "remote", "mock", "python"];

/** A value to be met; see matching.ts. */
export type Expectation = unknown;

/** One call and what it gives. Exactly one of `expect` and `error`, or neither when only success matters. */
export interface Step {
  /** A method or a property of the sandbox ("files.readFile"), of what an earlier step kept, or a word of the runner. */
  readonly do: string;
  readonly args?: readonly unknown[];
  /** Called on what an earlier step kept under this name, instead of the sandbox. */
  readonly on?: string;
  /** Keeps the result under this name. */
  readonly as?: string;
  readonly expect?: Expectation;
  readonly error?: Expectation;
  /** Where this step is left out, each with the reason. */
  readonly except?: Partial<Record<Place, string>>;
}

/**
 * A behaviour that every sandbox shows, whatever it is made of. The cases are data, so that every language runs the same
 * ones.
 */
export interface Case {
  readonly title: string;
  /** What the directory holds, by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** For `Sandbox.fromLocal`. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** The sandbox cannot be opened. */
  readonly opening?: { readonly error: Expectation };
  readonly steps?: readonly Step[];
  readonly except?: Partial<Record<Place, string>>;
}

const CASE_KEYS = ["title", "files", "options", "opening", "steps", "except"];
const STEP_KEYS = ["do", "args", "on", "as", "expect", "error", "except"];

/** All cases, by the name of their file. */
export function loadCases(): ReadonlyMap<string, readonly Case[]> {
  const directory = join(import.meta.dirname, "cases");
  const names = readdirSync(directory).filter((name) => name.endsWith(".yaml"));
  return new Map(
    names.sort().map((name) => {
      const cases = parse(readFileSync(join(directory, name), "utf8"), { version: "1.2" }) as Case[];
      for (const one of cases) check(name, one);
      return [name.replace(/\.yaml$/, ""), cases];
    }),
  );
}

export function needsPrograms({ steps = [] }: Case): boolean {
  return steps.some((step) => ["run", "exec", "session"].includes(step.do));
}

/** A misspelt key would make a case that proves less than it says. */
function check(file: string, one: Case): void {
  const place = `${file}: ${one.title}`;
  refuseUnknown(place, one, CASE_KEYS);
  refuseUnknown(place, one.except ?? {}, PLACES);
  if ((one.opening === undefined) === (one.steps === undefined)) throw new Error(`${place}: either opening or steps`);
  for (const step of one.steps ?? []) {
    refuseUnknown(place, step, STEP_KEYS);
    refuseUnknown(place, step.except ?? {}, PLACES);
    if (step.expect !== undefined && step.error !== undefined) throw new Error(`${place}: expect and error in a step`);
  }
}

function refuseUnknown(place: string, value: object, known: readonly string[]): void {
  const unknown = Object.keys(value).filter((key) => !known.includes(key));
  if (unknown.length > 0) throw new Error(`${place}: ${unknown.join(", ")} mean nothing`);
}
