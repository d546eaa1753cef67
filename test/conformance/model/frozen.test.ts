import { describe, expect, test } from "vitest";
import { aTickOfFileTimes } from "../../support/eventually.ts";
import { type As, identityOf, reasonAgainst } from "../../support/identity.ts";
import { rounds } from "../../support/rounds.ts";
import { openWorkspace, type TestWorkspace } from "../../support/workspace.ts";
import { type Caller, type Listing, startCaller } from "../posix/caller.ts";
import { listingDifferences } from "../posix/listing.ts";
import { randomTree } from "./lower-tree.ts";
import { OperationSource, type Step } from "./operations.ts";
import { plainCopyOf } from "./plain-copy.ts";
import { Random } from "./random.ts";
import { keepingOwnRights, seedsFor, shown } from "./runs.ts";
import { TwinRun } from "./twin-run.ts";

const STEPS = 900;
/** Between two snapshots, on average. */
const STEPS_OF_A_LAYER = 150;

describe("snapshots at random moments change nothing for who works in the mount, and show that moment ever after", () => {
  for (const as of ["root", "user"] as const) {
    // A quota makes the engine see every write; without one root's files are written past it.
    for (const quota of as === "root" ? [undefined, { bytes: 2 ** 40 }] : [undefined]) {
      const reason = reasonAgainst(as);
      const title = `as ${as}${quota ? ", with a quota" : ""}${reason ? ` (skipped: ${reason})` : ""}, seed %i`;
      test.skipIf(reason !== undefined).for(seedsFor(rounds(1)))(title, (seed) => compareRun(as, seed, quota));
    }
  }
});

interface Moment {
  readonly layers: readonly string[];
  readonly listing: Listing;
}

async function compareRun(as: As, seed: number, quota: { readonly bytes: number } | undefined): Promise<void> {
  console.log(`model of ${STEPS} operations with snapshots as ${as}: repeat with AGENTFENSE_SEED=${seed}`);
  const random = new Random(seed);
  const tree = randomTree(random);
  const rules = [{ pattern: "/**", permission: "write" }] as const;
  await using workspace = await openWorkspace({ lower: tree, rules, as, ...(quota && { quota }) });
  await using plain = plainCopyOf(workspace.lower);
  const identity = as === "user" ? identityOf("user") : {};
  await using onMount = await startCaller(identity);
  await using onPlain = await startCaller(identity);
  const recentFromNs = String(BigInt(Date.now()) * 1_000_000n);
  await aTickOfFileTimes();
  const codebase = await onPlain.listing(plain.path, recentFromNs);
  const sides = {
    mount: { root: workspace.mountPoint, caller: onMount },
    plain: { root: plain.path, caller: onPlain },
  };
  const run = new TwinRun(sides, directoriesOf(codebase), recentFromNs);
  const source = new OperationSource(random, Object.keys(codebase));
  const taken: Step[] = [];
  const moments: Moment[] = [];
  for (let count = 0; count < STEPS; count++) {
    if (random.below(STEPS_OF_A_LAYER) === 0 || count === 30) {
      await workspace.freeze();
      const listing = await onPlain.listing(plain.path, recentFromNs);
      moments.push({ layers: workspace.frozen, listing });
      run.frozen(directoriesOf(listing));
      taken.push({ name: "stat", args: ["a snapshot"] });
    }
    for (const made of source.next()) {
      const step = as === "user" ? keepingOwnRights(made) : made;
      const result = await run.take(step);
      if ("result" in result) {
        if (result.result !== "skipped") taken.push(step);
        if (result.result === "succeeded") source.succeeded(step);
        continue;
      }
      expect.fail(
        `seed ${seed}, operation ${count}: ${shown(step)}\nexpected ${JSON.stringify(result.expected)}\ngot      ${JSON.stringify(result.got)}\nbefore it:\n${taken.slice(-60).map(shown).join("\n")}`,
      );
    }
  }
  const live = await onMount.listing(workspace.mountPoint, recentFromNs);
  expect(listingDifferences(await onPlain.listing(plain.path, recentFromNs), live)).toEqual([]);
  await run.closeAll();
  const closed = withoutLinkCounts(await onMount.listing(workspace.mountPoint, recentFromNs));
  await workspace.remount();
  expect(
    listingDifferences(closed, withoutLinkCounts(await onMount.listing(workspace.mountPoint, recentFromNs))),
  ).toEqual([]);
  for (const moment of moments) await compareWithMoment(workspace, moment, onMount, recentFromNs);
}

/** Another workspace on the same layers shows what was there then, and what it does shows nowhere else. */
async function compareWithMoment(
  workspace: TestWorkspace,
  { layers, listing }: Moment,
  caller: Caller,
  recentFromNs: string,
): Promise<void> {
  await using fork = await workspace.fork(layers);
  const found = await caller.listing(fork.mountPoint, recentFromNs);
  expect(listingDifferences(withoutLinkCounts(listing), withoutLinkCounts(found))).toEqual([]);
  // What it then does is nobody else's: the later moments are compared after this.
  for (const [path, { type }] of Object.entries(listing)) {
    if (type === "file") await caller.call("unlink", `${fork.mountPoint}/${path}`).catch(() => {});
  }
}

function directoriesOf(listing: Listing): string[] {
  return Object.keys(listing).filter((path) => listing[path]?.type === "directory");
}

/** A file that a snapshot holds shows one link, as one of the codebase does, once its mount is another. */
function withoutLinkCounts(listing: Listing): Listing {
  return Object.fromEntries(Object.entries(listing).map(([path, entry]) => [path, { ...entry, nlink: 1 }]));
}
