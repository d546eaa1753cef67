import { readdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { ALICE, Place } from "./place.ts";

describe("the home of a sandbox", () => {
  test("is there after a stop, a restart of the server and its crash, and goes with the sandbox", async () => {
    await using place = await Place.open({ runtime: "bwrap" });
    const id = await place.running();
    const kept = async (): Promise<string> => (await place.run(id, "cat ~/kept; ls /tmp")).stdout;
    await place.run(id, "echo login > ~/kept; touch /tmp/gone");
    await place.sandboxes.stop(ALICE, id);
    await place.sandboxes.start(ALICE, id);
    expect(await kept()).toBe("login\n");
    await place.reopen();
    expect(await kept()).toBe("login\n");
    await place.reopen({ crash: true });
    expect(await kept()).toBe("login\n");
    await place.sandboxes.destroy(ALICE, id);
    expect(await readdir(place.deltaDirectory)).toEqual([]);
  });

  test("is no part of what changed, is synced or is discarded, and counts in the bytes of the deltas", async () => {
    await using place = await Place.open({ runtime: "bwrap" });
    const id = await place.running({ sync: "manual" });
    await place.run(id, "head -c 100000 /dev/zero > ~/mine; echo work > /workspace/work");
    const { items } = await place.sandboxes.changes(ALICE, id, { pageSize: 0, pageToken: "" });
    expect(items.map(({ path }) => path)).toEqual(["/work"]);
    expect(await place.sandboxes.deltaBytes()).toBe(102_400 + 4096);
    await place.sandboxes.discard(ALICE, id, []);
    await place.sandboxes.apply(ALICE, id, { paths: [], dryRun: false });
    expect((await place.run(id, "ls ~ /workspace")).stdout).toBe("/home/agent:\nmine\n\n/workspace:\n");
  });
});
