import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { reasonAgainst } from "../../../../../test/support/identity.ts";
import { openIsolation } from "../../../src/isolation/isolation.ts";

const reason = reasonAgainst("root");
if (reason !== undefined) console.log(`what no network costs is not counted: ${reason}`);

/** How many sockets listen or wait in the network of a box: a line of these tables that is no heading has a number first. */
const SOCKETS = "cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | grep -cE '^ *[0-9]+:'; true";

test.skipIf(reason !== undefined)(
  "sandboxes without a network start no thread for one and have no socket; a filtered one has both",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "agentfense-none-"));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const threads: (string | null)[] = [];
    const onWorker = (worker: Worker): void => void threads.push(worker.threadName);
    process.on("worker", onWorker);
    onTestFinished(() => void process.off("worker", onWorker));

    await using isolation = await openIsolation({});
    const make = async (id: string, network: "none" | "filtered") => {
      const workspace = { lowers: [directory], delta: join(directory, `delta-${id}`), rules: [] };
      const sandbox = await isolation.create({ runtime: "bwrap", workspaces: [workspace], network });
      await sandbox.start();
      const { stdout } = await sandbox.exec({ command: SOCKETS });
      return { sandbox, sockets: Number.parseInt(String(stdout), 10) };
    };
    const first = await make("a", "none");
    const second = await make("b", "none");
    expect([first.sockets, second.sockets]).toEqual([0, 0]);
    expect(threads).not.toContain("agentfense-network");
    const filtered = await make("c", "filtered");
    // The same look finds what a filtered network has: it would have found that of the others.
    expect(filtered.sockets).toBeGreaterThan(0);
    expect(threads).toContain("agentfense-network");
    for (const { sandbox } of [first, second, filtered]) await sandbox.destroy();
  },
);
