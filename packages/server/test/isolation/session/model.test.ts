import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { rounds } from "../../../../../test/support/rounds.ts";
import { openSession, place, shells } from "./fixture.ts";

/** What a shell should remember. */
interface Model {
  readonly variables: Map<string, string>;
  directory: string;
  status: number;
}

interface Step {
  readonly command: string;
  readonly out: string;
  readonly code: number;
}

const NAMES = ["alpha", "beta", "gamma"];
const VALUES = ["", "x", "two words", "it's", '"quoted"', "$HOME", "a\nb", "\\", "é🙂", "*", "-n"];
const DIRECTORIES = ["d1", "d2", "d 3"];

const SEEDS = Array.from({ length: rounds(2) }, (_, index) => index + 1);

/** A small generator of repeatable numbers. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** One random command and what it must do. */
function nextStep(model: Model, pick: (below: number) => number): Step {
  const name = NAMES[pick(NAMES.length)]!;
  const value = VALUES[pick(VALUES.length)]!;
  const directory = join(place, DIRECTORIES[pick(DIRECTORIES.length)]!);
  const code = pick(5) === 0 ? pick(256) : 0;
  const moves: (() => Step)[] = [
    () => {
      model.variables.set(name, value);
      return { command: `${name}=${quoted(value)}`, out: "", code: 0 };
    },
    () => ({ command: `printf %s "$${name}"`, out: model.variables.get(name) ?? "", code: 0 }),
    () => {
      model.directory = directory;
      return { command: `cd ${quoted(directory)} && pwd`, out: `${directory}\n`, code: 0 };
    },
    () => ({ command: "pwd", out: `${model.directory}\n`, code: 0 }),
    () => ({ command: `(exit ${code})`, out: "", code }),
    () => ({ command: "echo $?", out: `${model.status}\n`, code: 0 }),
    () => ({ command: `cat <<'END'\n${value}\nEND`, out: `${value}\n`, code: 0 }),
    () => ({ command: `if ${value.includes("'") ? "; (" : "'"}`, out: "", code: -1 }),
    () => ({ command: `printf ${"x".repeat(pick(70_000))} # ${value.replaceAll("\n", " ")}`, out: "", code: -2 }),
    () => ({ command: `${name}=$(printf %s "$${name}"; false)`, out: "", code: 1 }),
  ];
  return moves[pick(moves.length)]!();
}

describe.each(shells)("$title against a model", (shell) => {
  test.each(SEEDS)("remembers what the model remembers, seed %d", async (seed) => {
    for (const name of DIRECTORIES) mkdirSync(join(place, name), { recursive: true });
    await using session = await openSession(shell);
    const pick = numbers(seed);
    const model: Model = { variables: new Map(), directory: place, status: 0 };
    await session.run(NAMES.map((name) => `${name}=`).join("; "));
    for (let count = 0; count < 120; count++) {
      const step = nextStep(model, pick);
      const result = await session.run(step.command);
      const context = `step ${count}: ${step.command.slice(0, 100)}`;
      if (step.code === -1) expect(result.code, context).toBeGreaterThan(0);
      else if (step.code === -2) expect(result.out, context).toMatch(/^x*$/);
      else expect({ out: result.out, code: result.code }, context).toEqual({ out: step.out, code: step.code });
      // An assignment from a substitution drops trailing newlines; no value here ends in one.
      model.status = result.code;
    }
  });
});
