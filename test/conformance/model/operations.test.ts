import { describe, expect, test } from "vitest";
import { aTickOfFileTimes } from "../../support/eventually.ts";
import { type As, identityOf, reasonAgainst } from "../../support/identity.ts";
import { rounds } from "../../support/rounds.ts";
import { openWorkspace } from "../../support/workspace.ts";
import { startCaller } from "../posix/caller.ts";
import { listingDifferences } from "../posix/listing.ts";
import { randomTree } from "./lower-tree.ts";
import { OperationSource, type Step } from "./operations.ts";
import { plainCopyOf } from "./plain-copy.ts";
import { Random } from "./random.ts";
import { keepingOwnRights, seedsFor, shown } from "./runs.ts";
import { TwinRun } from "./twin-run.ts";

const STEPS = 1200;

describe("random operations on a mount and in a plain directory have equal results", () => {
  for (const as of ["root", "user"] as const) {
    const reason = reasonAgainst(as);
    const seeds = seedsFor(rounds(as === "root" ? 3 : 1));
    const title = `as ${as}${reason ? ` (skipped: ${reason})` : ""}, seed %i`;
    test.skipIf(reason !== undefined).for(seeds)(title, (seed) => compareRun(as, seed));
  }
});

async function compareRun(as: As, seed: number): Promise<void> {
  console.log(`model of ${STEPS} operations as ${as}: repeat with AGENTFENSE_SEED=${seed}`);
  const random = new Random(seed);
  const tree = randomTree(random);
  await using workspace = await openWorkspace({ lower: tree, rules: [{ pattern: "/**", permission: "write" }], as });
  await using plain = plainCopyOf(workspace.lower);
  const identity = as === "user" ? identityOf("user") : {};
  await using onMount = await startCaller(identity);
  await using onPlain = await startCaller(identity);

  // Times up to here came with the codebase and must be kept to the nanosecond. The kernel's clock for time stamps
  // may be a tick late.
  const recentFromNs = String(BigInt(Date.now()) * 1_000_000n);
  await aTickOfFileTimes();
  const sides = {
    mount: { root: workspace.mountPoint, caller: onMount },
    plain: { root: plain.path, caller: onPlain },
  };
  const codebase = await onPlain.listing(plain.path, recentFromNs);
  expect(listingDifferences(codebase, await onMount.listing(workspace.mountPoint, recentFromNs))).toEqual([]);

  const directories = Object.keys(codebase).filter((path) => codebase[path]?.type === "directory");
  const run = new TwinRun(sides, directories, recentFromNs);
  const source = new OperationSource(random, Object.keys(codebase));
  const taken: Step[] = [];
  for (let count = 0; count < STEPS; count++) {
    for (const made of source.next()) {
      const step = as === "user" ? keepingOwnRights(made) : made;
      const result = await run.take(step);
      if ("result" in result) {
        if (result.result !== "skipped") taken.push(step);
        if (result.result === "succeeded") source.succeeded(step);
        continue;
      }
      expect.fail(
        `seed ${seed}, operation ${count}: ${shown(step)}\nexpected ${JSON.stringify(result.expected)}\ngot      ${JSON.stringify(result.got)}\nbefore it:\n${taken.slice(-40).map(shown).join("\n")}`,
      );
    }
  }
  await run.closeAll();

  const live = await onMount.listing(workspace.mountPoint, recentFromNs);
  expect(listingDifferences(await onPlain.listing(plain.path, recentFromNs), live)).toEqual([]);
  await workspace.remount();
  expect(listingDifferences(live, await onMount.listing(workspace.mountPoint, recentFromNs))).toEqual([]);
}
