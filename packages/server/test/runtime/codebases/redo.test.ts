import { mkdirSync, readdirSync, renameSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import type { JobInput, JobName, JobOutput } from "../../../src/isolation/jobs/jobs.ts";
import { type Jobs, JobThread } from "../../../src/isolation/jobs/thread.ts";
import type { AskOptions } from "../../../src/isolation/threads/answering-thread.ts";
import { SERVER } from "../../../src/runtime/caller.ts";
import { RuntimeError } from "../../../src/runtime/runtime-error.ts";
import { openSqliteStore } from "../../../src/runtime/store/sqlite/open-sqlite-store.ts";
import type { MetadataStore } from "../../../src/runtime/store/store.ts";
import { refusal, shapeOf, temporary } from "./fixture.ts";
import { type Entry, expected, type Operation, perform, readVersion, type State } from "./model.ts";
import { openPlace } from "./opening.ts";

const START: Operation = {
  kind: "batch",
  replaceAll: false,
  entries: [
    ["f", "644 file"],
    ["d/x/y", "644 deep"],
    ["d/z", "600 z"],
    ["e", "-> f"],
    ["g", "-> d"],
    ["h", "755 h"],
    ["k/l", "-> nowhere"],
  ] satisfies Entry[],
};
const SECOND: Operation = {
  kind: "batch",
  replaceAll: true,
  entries: [
    ["f", "644 other"],
    ["d", "644 a file"],
  ],
};

/** Each touches the disk in another way. */
const CHANGES: Readonly<Record<string, Operation>> = {
  "every kind into every other": {
    kind: "batch",
    replaceAll: false,
    entries: [
      ["f/now/dir", "644 a"],
      ["f", "711/"],
      ["d", "644 was a directory"],
      ["e", "755/"],
      ["g", "644 was a link"],
      ["h", "-> f"],
      ["k", undefined],
      ["new", "644 new"],
    ],
  },
  "a replaced file": { kind: "upload", path: "f", mode: 0o755, text: "file" },
  "a renamed directory": { kind: "rename", from: "d", to: "m/n" },
  "a renamed directory of links": { kind: "rename", from: "k", to: "kk" },
  "a deleted directory": { kind: "delete", path: "d" },
  "a rollback": { kind: "rollback", version: 1 },
  "a sync": {
    kind: "sync",
    entries: [
      ["f", "644 synced"],
      ["d/new", "644 n"],
      ["d/z", undefined],
    ],
  },
};

describe("a change that stops after any of its steps", () => {
  test.each(Object.keys(CHANGES))("%s: readers see the old version until it is done, and it is done", async (name) => {
    const root = temporary();
    await using threads = new JobThread({ threads: 1 });
    const stopping = new StoppingJobs(threads);
    const operation = CHANGES[name]!;
    let stepCount = 1;
    for (let stop = 0; stop <= stepCount; stop++) {
      await using place = await openPlace(root, { jobs: stopping });
      const { codebases } = place;
      const { id } = await codebases.create(SERVER, { name: "p", ownerId: "o" });
      const history: State[] = [new Map()];
      const preparation = operation.kind === "rollback" ? [START, SECOND] : [START];
      for (const one of preparation) {
        await perform(codebases, id, one);
        history.push(expected(history.at(-1)!, one, history)!);
      }
      const before = history.at(-1)!;
      const after = expected(before, operation, history)!;

      stopping.stopAfter = stop;
      expect(await refusal(perform(codebases, id, operation))).toBe("INTERNAL: the codebase store failed");
      stepCount = stopping.stepCount;
      expect(Object.fromEntries(await readVersion(codebases, id, 0)), `after ${stop} steps`).toEqual(
        Object.fromEntries(before),
      );

      stopping.stopAfter = undefined;
      // Every second time the server dies, else the next change finds the journal.
      if (stop % 2 === 0) {
        await place[Symbol.asyncDispose]();
        await using again = await openPlace(root, { jobs: threads });
        await check(again.codebases, id, before, after, history.length);
      } else {
        await refusal(codebases.deleteFile(SERVER, id, "is/not/there"));
        await check(codebases, id, before, after, history.length);
      }
    }

    async function check(
      codebases: Awaited<ReturnType<typeof openPlace>>["codebases"],
      id: string,
      before: State,
      after: State,
      version: number,
    ): Promise<void> {
      expect((await codebases.get(SERVER, id)).version).toBe(version);
      expect(shapeOf(join(root, "codebases", id, "tree"))).toEqual(Object.fromEntries(after));
      expect(Object.fromEntries(await readVersion(codebases, id, version))).toEqual(Object.fromEntries(after));
      expect(Object.fromEntries(await readVersion(codebases, id, version - 1))).toEqual(Object.fromEntries(before));
    }
  });
});

describe("a change while the database does not answer", () => {
  const OUTAGES = [
    { call: "beginChange", happens: false, version: 1 },
    { call: "beginChange", happens: true, version: 2 },
    { call: "finishChange", happens: false, version: 2 },
    { call: "finishChange", happens: true, version: 2 },
    { call: "settleChange", happens: false, version: 2 },
    { call: "settleChange", happens: true, version: 2 },
  ] as const;

  test.each(OUTAGES)("$call is lost, and had happened: $happens", async ({ call, happens, version }) => {
    const root = temporary();
    await using metadata = await openSqliteStore({ path: join(root, "metadata.db") });
    const store = new LosingStore(metadata);
    await using place = await openPlace(root, { store: store.asStore() });
    const { codebases } = place;
    const { id } = await codebases.create(SERVER, { name: "p", ownerId: "o" });
    const upload = (text: string) => perform(codebases, id, { kind: "upload", path: "f", mode: 0o644, text });
    await upload("old");
    const isSettled = async () => expect(await metadata.unsettledChanges()).toEqual([]);
    await eventually(isSettled);
    const seen: number[] = [];
    using _watching = codebases.onChange(async (change) => void seen.push(change.version));

    store.lose(call, happens);
    // Nobody waits for the last of these.
    const isTold = call !== "settleChange";
    expect(await refusal(upload("new"))).toBe(isTold ? "DATABASE_UNAVAILABLE: gone" : "it succeeded");
    store.answer();

    // By itself, and before anybody changes anything.
    const state = async () => [
      (await codebases.get(SERVER, id)).version,
      (await readVersion(codebases, id, 0)).get("f"),
    ];
    await eventually(async () => expect(await state()).toEqual([version, version === 2 ? "644 new" : "644 old"]));
    await upload("newest");
    expect(await state()).toEqual([version + 1, "644 newest"]);
    expect(seen).toEqual(version === 2 ? [2, 3] : [2]);
    expect(readdirSync(join(root, "codebases", id, "staging"))).toEqual([]);
    await eventually(isSettled);
  });
});

/** Calls of it fail as those of a database do that cannot be reached: before they happen, or when they have happened. */
class LosingStore {
  readonly #store: MetadataStore;
  #lost: { readonly call: string; readonly happens: boolean } | undefined;
  #isGone = false;

  constructor(store: MetadataStore) {
    this.#store = store;
  }

  lose(call: keyof MetadataStore, happens: boolean): void {
    this.#lost = { call: String(call), happens };
  }

  answer(): void {
    this.#lost = undefined;
    this.#isGone = false;
  }

  asStore(): MetadataStore {
    return new Proxy(this.#store, {
      get: (store, name) => {
        const method = Reflect.get(store, name) as unknown;
        if (typeof name === "symbol" || typeof method !== "function") return method;
        return async (...parameters: readonly unknown[]): Promise<unknown> => {
          const isLost = this.#lost?.call === name && !this.#isGone;
          if (isLost && this.#lost?.happens) await method.apply(store, parameters);
          this.#isGone ||= isLost;
          if (this.#isGone) throw new RuntimeError("DATABASE_UNAVAILABLE", "gone");
          return await method.apply(store, parameters);
        };
      },
    });
  }
}

describe("a change that is acknowledged", () => {
  test("does not wait for its names to be on the disk, and the next one does", async () => {
    await using threads = new JobThread({ threads: 2 });
    const holding = new HoldingJobs(threads);
    await using place = await openPlace(temporary(), { jobs: holding });
    const { codebases, metadata } = place;
    const { id } = await codebases.create(SERVER, { name: "p", ownerId: "o" });

    await perform(codebases, id, { kind: "upload", path: "d/a", mode: 0o644, text: "first" });
    expect(await metadata.unsettledChanges()).toHaveLength(1);
    const second = perform(codebases, id, { kind: "upload", path: "d/b", mode: 0o644, text: "second" });
    await holding.held;
    expect(holding.names.filter((name) => name === "runSteps")).toHaveLength(1);
    expect(Object.fromEntries(await readVersion(codebases, id, 0))).toEqual({ d: "755/", "d/a": "644 first" });

    holding.release();
    await second;
    const order = holding.names.filter((name) => name === "runSteps" || name === "settleSteps");
    expect(order.slice(0, 3)).toEqual(["runSteps", "settleSteps", "runSteps"]);
  });

  test("is carried out again when a loss of power took the names that were not on the disk", async () => {
    const root = temporary();
    let id = "";
    await using threads = new JobThread({ threads: 1 });
    {
      await using place = await openPlace(root, { jobs: new FailingJobs(threads, "settleSteps") });
      ({ id } = await place.codebases.create(SERVER, { name: "p", ownerId: "o" }));
      await perform(place.codebases, id, { kind: "upload", path: "d/a", mode: 0o644, text: "safe" });
      const [journal] = await place.metadata.unsettledChanges();
      const { upload } = journal!.plan as { readonly upload: string };
      // As it was before the steps: the content is staged, and was on the disk before the journal.
      const [tree, staging] = [join(root, "codebases", id, "tree"), join(root, "codebases", id, "staging", upload)];
      mkdirSync(staging);
      renameSync(join(tree, "d/a"), join(staging, "0"));
      rmdirSync(join(tree, "d"));
    }
    await using place = await openPlace(root, { jobs: threads });
    expect(shapeOf(join(root, "codebases", id, "tree"))).toEqual({ d: "755/", "d/a": "644 safe" });
    expect((await place.codebases.get(SERVER, id)).version).toBe(1);
    expect(await place.metadata.unsettledChanges()).toEqual([]);
    expect(readdirSync(join(root, "codebases", id, "staging"))).toEqual([]);
  });

  test("stays in the journal while the disk cannot settle it, and the next change waits for that", async () => {
    await using threads = new JobThread({ threads: 1 });
    const failing = new FailingJobs(threads, "settleSteps");
    await using place = await openPlace(temporary(), { jobs: failing });
    const { codebases, metadata } = place;
    const { id } = await codebases.create(SERVER, { name: "p", ownerId: "o" });
    await perform(codebases, id, { kind: "upload", path: "a", mode: 0o644, text: "first" });
    const second: Operation = { kind: "upload", path: "b", mode: 0o644, text: "second" };
    expect(await refusal(perform(codebases, id, second))).toBe("INTERNAL: the codebase store failed");
    expect((await metadata.unsettledChanges()).map(({ version }) => version.version)).toEqual([1]);

    failing.isFailing = false;
    await perform(codebases, id, second);
    expect((await codebases.get(SERVER, id)).version).toBe(2);
    expect(Object.fromEntries(await readVersion(codebases, id, 0))).toEqual({ a: "644 first", b: "644 second" });
  });
});

/** Lets no names get to the disk until it is told to. */
class HoldingJobs implements Jobs {
  readonly #jobs: Jobs;
  readonly #holding = Promise.withResolvers<void>();
  readonly #held = Promise.withResolvers<void>();
  readonly names: JobName[] = [];
  readonly held = this.#held.promise;
  readonly release = this.#holding.resolve;

  constructor(jobs: Jobs) {
    this.#jobs = jobs;
  }

  async run<Name extends JobName>(name: Name, input: JobInput<Name>, options?: AskOptions): Promise<JobOutput<Name>> {
    this.names.push(name);
    if (name === "settleSteps") {
      this.#held.resolve();
      await this.#holding.promise;
    }
    return await this.#jobs.run(name, input, options);
  }
}

/** Fails one kind of job as if the disk had. */
class FailingJobs implements Jobs {
  readonly #jobs: Jobs;
  readonly #failing: JobName;
  isFailing = true;

  constructor(jobs: Jobs, failing: JobName) {
    this.#jobs = jobs;
    this.#failing = failing;
  }

  async run<Name extends JobName>(name: Name, input: JobInput<Name>, options?: AskOptions): Promise<JobOutput<Name>> {
    if (this.isFailing && name === this.#failing) throw new Error("the disk failed");
    return await this.#jobs.run(name, input, options);
  }
}

/** Carries out the first steps of a change, and then fails as if the disk had. */
class StoppingJobs implements Jobs {
  readonly #jobs: Jobs;
  stopAfter: number | undefined;
  stepCount = 0;

  constructor(jobs: Jobs) {
    this.#jobs = jobs;
  }

  async run<Name extends JobName>(name: Name, input: JobInput<Name>, options?: AskOptions): Promise<JobOutput<Name>> {
    if (name !== "runSteps" || this.stopAfter === undefined) return await this.#jobs.run(name, input, options);
    const { steps, ...rest } = input as JobInput<"runSteps">;
    this.stepCount = steps.length;
    await this.#jobs.run("runSteps", { ...rest, steps: steps.slice(0, this.stopAfter) });
    throw new Error("the disk failed");
  }
}
