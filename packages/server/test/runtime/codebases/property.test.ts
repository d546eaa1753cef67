import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { rounds } from "../../../../../test/support/rounds.ts";
import { SERVER } from "../../../src/runtime/caller.ts";
import { RuntimeError } from "../../../src/runtime/runtime-error.ts";
import { arrange, shapeOf } from "./fixture.ts";
import { type Entry, equal, expected, fileValue, type Operation, perform, readVersion, type State } from "./model.ts";

const name = fc.constantFrom("a", "b", "c", ".d", "ü");
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/"));
const text = fc.constantFrom("", "one", "two", "x".repeat(3000));
const mode = fc.constantFrom(0o644, 0o755, 0o600);
const file = fc.tuple(mode, text).map(([bits, content]) => fileValue(bits, content));
const value = fc.oneof(
  { weight: 5, arbitrary: file },
  { weight: 1, arbitrary: fc.constantFrom("755/", "700/") },
  { weight: 1, arbitrary: fc.constantFrom("-> a", "-> /etc/passwd", "-> ../..") },
  { weight: 2, arbitrary: fc.constant(undefined) },
);
const entries = fc.uniqueArray(fc.tuple(path, value) as fc.Arbitrary<Entry>, { maxLength: 8, selector: ([at]) => at });

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("upload" as const), path, mode, text }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("link" as const), path, target: fc.constantFrom("a", "/x") }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("batch" as const), entries, replaceAll: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("delete" as const), path }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("rename" as const), from: path, to: path }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("rollback" as const), version: fc.integer({ min: 1, max: 12 }) }),
  },
);

test("whatever is done to a codebase, it and every version of it are as they should be", {
  timeout: 600_000,
}, async () => {
  const { codebases, root } = await arrange();
  const check = async (operations: readonly Operation[]): Promise<void> => {
    const { id } = await codebases.create(SERVER, { name: "p", ownerId: "o" });
    const history: State[] = [new Map()];
    for (const one of operations) {
      const state = history.at(-1)!;
      const next = expected(state, one, history);
      const failure = await perform(codebases, id, one).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (failure !== undefined && !(failure instanceof RuntimeError)) throw failure;
      const isRefused = next === undefined || (one.kind === "rollback" && one.version >= history.length);
      expect(failure === undefined, `${JSON.stringify(one)}: ${String(failure)}`).toBe(!isRefused);
      expect((failure as RuntimeError | undefined)?.code).not.toBe("INTERNAL");
      if (next !== undefined && !isRefused && !equal(next, state)) history.push(next);
      expect((await codebases.get(SERVER, id)).version).toBe(history.length - 1);
    }
    const newest = history.at(-1)!;
    expect(shapeOf(join(root, "codebases", id, "tree"))).toEqual(Object.fromEntries(newest));
    for (let version = 1; version < history.length; version++) {
      expect(Object.fromEntries(await readVersion(codebases, id, version))).toEqual(
        Object.fromEntries(history[version]!),
      );
    }
    const record = await codebases.get(SERVER, id);
    const files = [...newest.values()].filter((one) => !one.endsWith("/"));
    const sizes = files.filter((one) => !one.startsWith("->")).map((one) => one.length - one.indexOf(" ") - 1);
    expect(record.fileCount).toBe(files.length);
    expect(record.size).toBe(sizes.reduce((sum, size) => sum + size, 0));
    if (history.length > 1) {
      const layer = await codebases.open(id, 1 + ((history.length - 1) >> 1));
      expect(shapeOf(layer.directory)).toEqual(Object.fromEntries(history[1 + ((history.length - 1) >> 1)]!));
      await layer.release();
    }
    await codebases.delete(SERVER, id);
  };
  await fc.assert(fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 14 }), check), {
    numRuns: rounds(60),
    endOnFailure: false,
  });
});
