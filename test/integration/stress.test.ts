import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { randomTree } from "../conformance/model/lower-tree.ts";
import { Random } from "../conformance/model/random.ts";
import { startCaller } from "../conformance/posix/caller.ts";
import { listingDifferences } from "../conformance/posix/listing.ts";
import { EVERYTHING_WRITABLE } from "../conformance/posix/mounted.ts";
import { identityOf, reasonAgainst } from "../support/identity.ts";
import { rounds } from "../support/rounds.ts";
import { openWorkspace } from "../support/workspace.ts";
import { run } from "./program.ts";

const CHURN = fileURLToPath(new URL("./churn.py", import.meta.url));
const PROCESSES = 4;
const STEPS = 1500;

describe("several processes at random work on one mount", () => {
  for (const options of [{ as: "root" }, { as: "root", passthrough: false }, { as: "user" }] as const) {
    const reason = reasonAgainst(options.as);
    const how = Object.entries(options)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
    test.skipIf(reason !== undefined)(
      `leave a tree that is the same after a remount (${how})${reason ? ` (skipped: ${reason})` : ""}`,
      async () => {
        const seed = 1 + Math.floor(Math.random() * 1e9);
        console.log(`stress with seed ${seed}`);
        await using workspace = await openWorkspace({
          lower: randomTree(new Random(seed)),
          rules: EVERYTHING_WRITABLE,
          ...options,
        });
        const { uid, gid } = identityOf(options.as);
        const work = (index: number) => [workspace.mountPoint, ...[seed + index, rounds(STEPS), uid, gid].map(String)];
        const processes = Array.from({ length: PROCESSES }, (_, index) => run("/", ["python3", CHURN, ...work(index)]));
        const ended = await Promise.all(processes);
        expect(ended).toEqual(ended.map(() => ({ code: 0, stdout: "", stderr: "" })));

        await using fs = await startCaller({ uid, gid });
        const live = await fs.listing(workspace.mountPoint, "0");
        await workspace.remount();
        expect(listingDifferences(live, await fs.listing(workspace.mountPoint, "0")), `seed ${seed}`).toEqual([]);
      },
    );
  }
});
