import { describe, expect, test } from "vitest";
import { eventually, withoutHanging } from "../../../../../test/support/eventually.ts";
import type { Isolation } from "../../../src/isolation/isolation.ts";
import type { BoxedWorkspace, SandboxEvent } from "../../../src/isolation/sandbox/api.ts";
import { type State, type Step, stateOf, TRANSITIONS } from "../../../src/runtime/sandboxes/state.ts";
import type { MetadataStore } from "../../../src/runtime/store/store.ts";
import { ALICE, line, SandboxesFixture, type SandboxesFixtureOptions } from "./fixture.ts";

const STATES = ["PENDING", "RUNNING", "PAUSED", "IDLE", "STOPPED", "ERROR"] as const satisfies readonly State[];
const LIVING: readonly State[] = ["RUNNING", "PAUSED", "IDLE"];

/** What clients do, and the step that it is. */
const CALLS = {
  start: (place, id) => place.sandboxes.start(ALICE, id),
  stop: (place, id) => place.sandboxes.stop(ALICE, id),
  pause: (place, id) => place.sandboxes.pause(ALICE, id),
  resume: (place, id) => place.sandboxes.resume(ALICE, id),
  wake: (place, id) => place.sandboxes.exec(ALICE, id, line("true")),
  use: async (place, id) => (await place.sandboxes.processes(ALICE, id)).list(),
} satisfies Partial<Record<Step, (place: SandboxesFixture, id: string) => Promise<unknown>>>;

/** Sandboxes whose boxes, newest last, are in the test's hands. */
class Boxes {
  readonly #made = new Map<string, { sandbox: BoxedWorkspace; isOver: boolean; tell(event: SandboxEvent): void }>();
  /** Stands in for a method of a box, once. */
  readonly instead: Partial<Record<"start" | "pause" | "resume" | "destroy", () => Promise<void>>> = {};

  options(more: SandboxesFixtureOptions = {}): SandboxesFixtureOptions {
    return { defaults: { maxPerOwner: 0 }, ...more, wrap: (isolation) => this.#watch(isolation) };
  }

  breaks(id: string): void {
    this.#made.get(id)?.tell({ kind: "mount_lost", reason: "a defect" });
  }

  /** The state as far as the box has one. */
  of(id: string): "none" | "held" | "runs" {
    const made = this.#made.get(id);
    if (made === undefined || made.isOver) return "none";
    return made.sandbox.isPaused ? "held" : "runs";
  }

  #watch(isolation: Isolation): Isolation {
    const create: Isolation["create"] = async (spec, options) => {
      const sandbox = await isolation.create(spec, options);
      const made = { sandbox, isOver: false, tell: (event: SandboxEvent) => spec.onEvent?.(event) };
      for (const name of ["start", "pause", "resume", "destroy"] as const) {
        const real = sandbox[name].bind(sandbox);
        sandbox[name] = async (...given: []) => {
          const before = this.instead[name];
          delete this.instead[name];
          await before?.();
          await real(...given);
          if (name === "destroy") made.isOver = true;
        };
      }
      this.#made.set(sandbox.id, made);
      return sandbox;
    };
    return Object.assign(Object.create(isolation) as Isolation, { create });
  }
}

/** A sandbox in a state. */
async function inState(place: SandboxesFixture, boxes: Boxes, state: State): Promise<string> {
  const { id } = await place.create({ ...(state === "IDLE" ? { idlePauseMs: 1 } : {}) });
  if (state === "PENDING") return id;
  await place.sandboxes.start(ALICE, id);
  if (state === "PAUSED") await place.sandboxes.pause(ALICE, id);
  if (state === "STOPPED") await place.sandboxes.stop(ALICE, id);
  if (state === "ERROR") boxes.breaks(id);
  await eventually(async () => expect(await seen(place, boxes, id)).toEqual(agreed(state)));
  return id;
}

/** What the owner, the store and the box say. */
async function seen(place: SandboxesFixture, boxes: Boxes, id: string) {
  const stored = await place.store.sandbox(id);
  return { owner: stateOf(await place.sandboxes.get(ALICE, id)), store: stored && stateOf(stored), box: boxes.of(id) };
}

function agreed(state: State) {
  return { owner: state, store: state, box: !LIVING.includes(state) ? "none" : state === "RUNNING" ? "runs" : "held" };
}

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "done",
    ({ code, message }: { readonly code?: string; readonly message: string }) => code ?? message,
  );

describe("every step from every state", () => {
  for (const [step, call] of Object.entries(CALLS) as [keyof typeof CALLS, (typeof CALLS)["start"]][]) {
    test(`${step} leads to where the table says, or is refused and changes nothing`, async () => {
      const boxes = new Boxes();
      await using place = await SandboxesFixture.open(boxes.options());
      for (const state of STATES) {
        const id = await inState(place, boxes, state);
        const next = TRANSITIONS[step][state];
        const isRefused = next.startsWith("SANDBOX_");
        expect([state, await codeOf(call(place, id))]).toEqual([state, isRefused ? next : "done"]);
        // One that rests for a moment pauses again.
        const after = isRefused ? state : (next as State);
        await eventually(async () =>
          expect([agreed(after), ...(after === "RUNNING" && state === "IDLE" ? [agreed("IDLE")] : [])]).toContainEqual(
            await seen(place, boxes, id),
          ),
        );
      }
    });
  }

  test("a box that breaks leads to ERROR, from every state that has one", async () => {
    const boxes = new Boxes();
    await using place = await SandboxesFixture.open(boxes.options());
    for (const state of LIVING) {
      const id = await inState(place, boxes, state);
      boxes.breaks(id);
      await eventually(async () => expect(await seen(place, boxes, id)).toEqual(agreed("ERROR")));
      expect(TRANSITIONS.fail[state]).toBe("ERROR");
    }
  });

  test("destroy leads to nothing, from every state", async () => {
    const boxes = new Boxes();
    await using place = await SandboxesFixture.open(boxes.options());
    for (const state of STATES) {
      const id = await inState(place, boxes, state);
      await place.sandboxes.destroy(ALICE, id);
      expect([await codeOf(place.sandboxes.get(ALICE, id)), await place.store.sandbox(id), boxes.of(id)]).toEqual([
        "SANDBOX_NOT_FOUND",
        undefined,
        "none",
      ]);
    }
  });

  test("a restart of the server leads to the same state, with the box that belongs to it", async () => {
    const boxes = new Boxes();
    await using place = await SandboxesFixture.open(boxes.options());
    const ids = new Map<State, string>();
    for (const state of STATES) ids.set(state, await inState(place, boxes, state));
    for (const isCrash of [false, true]) {
      await place.reopen({ crash: isCrash });
      for (const [state, id] of ids) {
        expect([state, await seen(place, boxes, id)]).toEqual([state, agreed(state)]);
      }
    }
  });
});

describe("steps that race", () => {
  test("a stop during a start waits for it, and nothing can be run in between", async () => {
    const boxes = new Boxes();
    await using place = await SandboxesFixture.open(boxes.options());
    const id = await inState(place, boxes, "PENDING");
    const [begun, starting] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    boxes.instead.start = () => {
      begun.resolve();
      return starting.promise;
    };
    const started = place.sandboxes.start(ALICE, id);
    await begun.promise;
    const stopped = place.sandboxes.stop(ALICE, id);
    expect(await codeOf(place.sandboxes.exec(ALICE, id, line("true")))).toBe("SANDBOX_NOT_RUNNING");
    starting.resolve();
    expect([(await started).status, (await stopped).status]).toEqual(["RUNNING", "STOPPED"]);
    expect(await seen(place, boxes, id)).toEqual(agreed("STOPPED"));
  });

  test("a destroy during a pause ends both, and nothing is left", async () => {
    const boxes = new Boxes();
    await using place = await SandboxesFixture.open(boxes.options());
    const id = await inState(place, boxes, "RUNNING");
    const [begun, pausing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    boxes.instead.pause = () => {
      begun.resolve();
      return pausing.promise;
    };
    const paused = codeOf(place.sandboxes.pause(ALICE, id));
    await begun.promise;
    const destroyed = place.sandboxes.destroy(ALICE, id);
    expect(await codeOf(place.sandboxes.resume(ALICE, id))).toBe("SANDBOX_NOT_FOUND");
    pausing.resolve();
    await withoutHanging(() => destroyed);
    expect(await paused).toBe("done");
    expect([await place.store.sandbox(id), boxes.of(id)]).toEqual([undefined, "none"]);
  });

  test("a box that breaks during a resume leads to ERROR, whatever became of the resume", async () => {
    const boxes = new Boxes();
    await using place = await SandboxesFixture.open(boxes.options());
    for (const fails of [false, true]) {
      const id = await inState(place, boxes, "PAUSED");
      boxes.instead.resume = async () => {
        boxes.breaks(id);
        if (fails) throw new Error("nobody is there");
      };
      const resumed = await codeOf(place.sandboxes.resume(ALICE, id));
      expect(resumed).toBe(fails ? "INTERNAL" : "done");
      await eventually(async () => expect(await seen(place, boxes, id)).toEqual(agreed("ERROR")));
    }
  });

  test("a box that breaks during a stop is stopped, and can be started again", async () => {
    const boxes = new Boxes();
    await using place = await SandboxesFixture.open(boxes.options());
    const id = await inState(place, boxes, "RUNNING");
    boxes.instead.destroy = async () => boxes.breaks(id);
    await place.sandboxes.stop(ALICE, id);
    expect(await seen(place, boxes, id)).toEqual(agreed("STOPPED"));
    await place.sandboxes.start(ALICE, id);
    expect(await seen(place, boxes, id)).toEqual(agreed("RUNNING"));
  });

  test("a pause or a resume that the box refuses changes nothing", async () => {
    const boxes = new Boxes();
    await using place = await SandboxesFixture.open(boxes.options());
    const refuse = () => Promise.reject(new Error("a process does not stand still"));
    const id = await inState(place, boxes, "RUNNING");
    boxes.instead.pause = refuse;
    expect(await codeOf(place.sandboxes.pause(ALICE, id))).toBe("INTERNAL");
    expect(await seen(place, boxes, id)).toEqual(agreed("RUNNING"));
    await place.sandboxes.pause(ALICE, id);
    boxes.instead.resume = refuse;
    expect(await codeOf(place.sandboxes.resume(ALICE, id))).toBe("INTERNAL");
    expect(await seen(place, boxes, id)).toEqual(agreed("PAUSED"));
  });
});

describe("a step that cannot be recorded", () => {
  /** The next update of a record fails. */
  function forgetful(store: MetadataStore): void {
    const real = store.updateSandbox;
    store.updateSandbox = async () => {
      store.updateSandbox = real;
      throw new Error("the disk is full");
    };
  }

  test("is taken back: no box runs that should not, and none stands still", async () => {
    const boxes = new Boxes();
    await using place = await SandboxesFixture.open(boxes.options());
    for (const [state, call] of [
      ["PENDING", CALLS.start],
      ["RUNNING", CALLS.pause],
      ["PAUSED", CALLS.resume],
    ] as const) {
      const id = await inState(place, boxes, state);
      forgetful(place.store);
      expect(await codeOf(call(place, id))).toBe("INTERNAL");
      expect(await seen(place, boxes, id)).toEqual(agreed(state));
    }
  });

  test("is so all the same when there is no way back: what was stopped can be started", async () => {
    const boxes = new Boxes();
    await using place = await SandboxesFixture.open(boxes.options());
    const id = await inState(place, boxes, "RUNNING");
    forgetful(place.store);
    expect(await codeOf(place.sandboxes.stop(ALICE, id))).toBe("INTERNAL");
    expect(await seen(place, boxes, id)).toMatchObject({ owner: "STOPPED", box: "none" });
    await place.sandboxes.start(ALICE, id);
    expect(await seen(place, boxes, id)).toEqual(agreed("RUNNING"));
  });
});
