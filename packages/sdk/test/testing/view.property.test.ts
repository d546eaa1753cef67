import { compileRules, LEVEL, levelName, type Rule } from "@agentfense/permission";
import fc from "fast-check";
import { expect, test } from "vitest";
import { entryOf, MockCodebase, putEntry } from "../../src/testing/codebase.ts";
import { answered, Fault } from "../../src/testing/faults.ts";
import { Overlay } from "../../src/testing/overlay.ts";
import { GuardedView } from "../../src/testing/view.ts";
import { codeOf, openMock } from "./support.ts";

const NAMES = ["a", "b", "key"] as const;
const name = fc.constantFrom(...NAMES);
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/"));

const pattern = fc.oneof(
  path.map((each) => `/${each}`),
  path.map((each) => `/${each}/**`),
  name.map((each) => `**/${each}`),
  name.map((each) => `**/${each}/**`),
  fc.constantFrom("**/*", "/*", "/*/*", "/a/"),
);

const rules: fc.Arbitrary<Rule[]> = fc.array(
  fc.record({
    pattern,
    permission: fc.constantFrom("none", "view", "read", "write"),
    priority: fc.constantFrom(0, 0, 0, 10),
  }),
  { maxLength: 6 },
);

/** Files of which none is in the way of another. */
const tree = fc.uniqueArray(path, { minLength: 1, maxLength: 8 }).map((paths) => {
  const isDirectory = (one: string) => paths.some((other) => other.startsWith(`${one}/`));
  return paths.filter((one) => !isDirectory(one));
});

const ALL_PATHS = NAMES.flatMap((one) => [
  one,
  ...NAMES.flatMap((two) => [`${one}/${two}`, ...NAMES.map((three) => `${one}/${two}/${three}`)]),
]);

/** What there is, and what the rules say of it: worked out from the decisions alone. */
class Expectation {
  readonly files: ReadonlySet<string>;
  readonly directories: ReadonlySet<string>;
  readonly #policy: ReturnType<typeof compileRules>;

  constructor(files: readonly string[], given: readonly Rule[]) {
    this.files = new Set(files);
    this.directories = new Set(
      files.flatMap((file) => [...file.matchAll(/\//g)].map(({ index }) => file.slice(0, index))),
    );
    this.#policy = compileRules(given);
  }

  level(at: string): number {
    return this.#policy.decide(`/${at}`).level;
  }

  /** A directory shows by its own level, or as the way to something that does. */
  shows(at: string): boolean {
    if (!this.files.has(at) && !this.directories.has(at)) return false;
    const below = [...this.files, ...this.directories].filter((each) => each.startsWith(`${at}/`));
    return this.level(at) > LEVEL.none || below.some((each) => this.level(each) > LEVEL.none);
  }

  listing(): string[] {
    const all = [...this.files, ...this.directories].filter((each) => this.shows(each)).sort();
    return all.map(
      (each) => `${each} ${levelName(this.level(each) as 0) === "none" ? "view" : levelName(this.level(each) as 0)}`,
    );
  }

  reading(at: string): string {
    const blocked = this.#onTheWay(at);
    if (blocked !== undefined) return blocked;
    if (!this.shows(at)) return "FILE_NOT_FOUND";
    if (this.directories.has(at)) return "FILE_WRONG_KIND";
    return this.level(at) >= LEVEL.read ? "no error" : "FILE_PERMISSION_DENIED";
  }

  writing(at: string): string {
    const blocked = this.#onTheWay(at);
    if (blocked !== undefined) return blocked;
    if (this.shows(at) && this.directories.has(at)) return "FILE_WRONG_KIND";
    if (this.level(at) < LEVEL.write) return "FILE_PERMISSION_DENIED";
    return "no error";
  }

  #onTheWay(at: string): string | undefined {
    for (const { index } of at.matchAll(/\//g)) {
      const above = at.slice(0, index);
      if (!this.shows(above)) return "FILE_NOT_FOUND";
      if (this.files.has(above)) return "FILE_WRONG_KIND";
    }
    return undefined;
  }
}

/** The view itself, without the wire: a thousand questions cost nothing. */
function viewOf(given: readonly Rule[], paths: readonly string[]): GuardedView {
  const codebase = new MockCodebase({ name: "any", ownerId: "any" });
  codebase.change((files) => {
    for (const each of paths) putEntry(files, `/${each}`, entryOf("file", each));
  });
  const policy = compileRules(given);
  return new GuardedView({ overlay: new Overlay(() => codebase), policy: () => policy, onDenied: () => {} });
}

/** The code that a refusal travels with. */
function answerOf(work: () => unknown): string {
  try {
    answered("", work);
  } catch (error) {
    if (error instanceof Fault) return error.code;
    throw error;
  }
  return "no error";
}

test("the view is what the rules decide, and the ways to it", () => {
  fc.assert(
    fc.property(rules, tree, (given, paths) => {
      const expected = new Expectation(paths, given);
      const view = viewOf(given, paths);
      const listed = view.list("/", { recursive: true });
      expect(listed.map((entry) => `${entry.path.slice(1)} ${entry.permission}`)).toEqual(expected.listing());
      for (const at of ALL_PATHS) {
        const answers = { at, reading: answerOf(() => view.read(`/${at}`)), shows: view.shows(`/${at}`) };
        expect(answers).toEqual({ at, reading: expected.reading(at), shows: expected.shows(at) });
      }
    }),
    { numRuns: 300, seed: 5 },
  );
});

test("what may be written is what the path's own level says", () => {
  fc.assert(
    fc.property(rules, tree, (given, paths) => {
      const expected = new Expectation(paths, given);
      for (const at of ALL_PATHS) {
        const view = viewOf(given, paths);
        const writing = answerOf(() => view.write(`/${at}`, Buffer.from("new")));
        expect(`${at}: ${writing}`).toBe(`${at}: ${expected.writing(at)}`);
        if (writing === "no error") expect(Buffer.from(view.read(`/${at}`)).toString()).toBe("new");
      }
    }),
    { numRuns: 40, seed: 5 },
  );
});

test("the answers are the same over the wire", async () => {
  await fc.assert(
    fc.asyncProperty(rules, tree, fc.constantFrom(...ALL_PATHS), async (given, paths, at) => {
      const expected = new Expectation(paths, given);
      const files = Object.fromEntries(paths.map((each) => [each, "x"]));
      await using mock = await openMock({ permissions: given, files });
      const { client, id, engine, codebaseId } = mock;
      const listed = await client.listDirectory(id, "", { recursive: true });
      expect(listed.map((entry) => `${entry.path} ${entry.permission}`)).toEqual(expected.listing());
      expect(await codeOf(client.readFileBytes(id, at))).toBe(expected.reading(at));
      const writing = await codeOf(client.writeFile(id, at, "new"));
      expect(writing).toBe(expected.writing(at));
      const changes = await client.listChanges(id).toArray();
      expect(changes.map((change) => change.path)).toEqual(writing === "no error" ? [`/${at}`] : []);
      expect(engine.filesOf(codebaseId)).toEqual(files);
    }),
    { numRuns: 25, seed: 5 },
  );
});
