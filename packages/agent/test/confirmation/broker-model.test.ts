import fc from "fast-check";
import { expect, test } from "vitest";
import { ConfirmationBroker } from "../../src/confirmation/broker.ts";
import { requestHash } from "../../src/confirmation/hash.ts";
import { request } from "./support.ts";

// Any history of asking, answering, withdrawing and waiting, against a few lines that say what should come of it.

const owner = fc.constantFrom("alice", "mallory", undefined);
const step = fc.oneof(
  fc.record({ op: fc.constant("ask" as const), owner, lifeMs: fc.integer({ min: 1, max: 100 }) }),
  fc.record({
    op: fc.constant("answer" as const),
    target: fc.nat(5),
    viewer: owner,
    approve: fc.boolean(),
    rightHash: fc.boolean(),
  }),
  fc.record({ op: fc.constant("withdraw" as const), target: fc.nat(5) }),
  fc.record({ op: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 60 }) }),
);

interface Asked {
  readonly owner: string | undefined;
  readonly id: string;
  readonly hash: string;
  readonly expiresAt: number;
  readonly controller: AbortController;
  readonly outcome: Promise<string>;
  state: "open" | "approved" | "denied" | "expired" | "withdrawn";
}

const REFUSALS = {
  approved: "already_answered",
  denied: "already_answered",
  expired: "expired",
  withdrawn: "withdrawn",
};

function expected(asked: Asked, now: number, viewer: string | undefined, rightHash: boolean): string {
  if (viewer !== undefined && viewer !== asked.owner) return "unknown";
  if (asked.state !== "open") return REFUSALS[asked.state];
  if (now >= asked.expiresAt) return "expired";
  return rightHash ? "accepted" : "hash_mismatch";
}

test("each request is answered at most once, by who may, for what it is, in time", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      // No timer runs before the last step: only the clock that is turned here decides.
      let now = 1_000_000;
      const broker = new ConfirmationBroker({ now: () => now });
      const history: Asked[] = [];
      for (const each of steps) {
        if (each.op === "wait") now += each.ms;
        else if (each.op === "ask") history.push(ask(broker, each.owner, now + each.lifeMs));
        else {
          const asked = history[each.target];
          if (asked === undefined) continue;
          if (each.op === "withdraw") {
            asked.controller.abort(new Error("gone"));
            if (asked.state === "open") asked.state = "withdrawn";
            continue;
          }
          const outcome = expected(asked, now, each.viewer, each.rightHash);
          const hash = each.rightHash ? asked.hash : requestHash(request({ code: "other" }));
          const given = broker.answer({ id: asked.id, hash, approve: each.approve }, { ownerId: each.viewer });
          expect(given.accepted ? "accepted" : given.reason).toBe(outcome);
          if (outcome === "accepted") asked.state = each.approve ? "approved" : "denied";
          else if (outcome === "expired") asked.state = "expired";
        }
      }
      const open = history.filter(({ state }) => state === "open");
      expect(broker.pending({ ownerId: undefined }).map(({ id }) => id)).toEqual(open.map(({ id }) => id));
      broker.close();
      const outcomes = await Promise.all(history.map(({ outcome }) => outcome));
      expect(outcomes).toEqual(history.map(({ state }) => DECISIONS[state]));
    }),
    { numRuns: 200 },
  );
});

const DECISIONS = { open: "denied", approved: "approved", denied: "denied", expired: "timed_out", withdrawn: "gone" };

function ask(broker: ConfirmationBroker, ownerId: string | undefined, expiresAt: number): Asked {
  const controller = new AbortController();
  const asking = broker.request(request({ expiresAt: new Date(expiresAt) }), { ownerId, signal: controller.signal });
  const { id, hash } = broker.pending({ ownerId: undefined }).at(-1)!;
  const outcome = asking.then(
    ({ decision }) => decision,
    (error: Error) => error.message,
  );
  return { owner: ownerId, id, hash, expiresAt, controller, outcome, state: "open" };
}
