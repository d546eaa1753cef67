import { createHook } from "node:async_hooks";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { EmptyDeltas } from "../../../src/runtime/sandboxes/parts.ts";

function makeDelta(): { readonly delta: string; readonly tree: string } {
  const delta = mkdtempSync(join(tmpdir(), "agentfense-delta-"));
  onTestFinished(() => rmSync(delta, { recursive: true, force: true }));
  const tree = join(delta, "tree");
  mkdirSync(tree);
  return { delta, tree };
}

/** How often another thread was asked to read something meanwhile. */
async function readingsOf(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type === "FSREQPROMISE") count += 1;
    },
  });
  hook.enable();
  await work();
  hook.disable();
  return count;
}

test("a delta that stays empty is not read again", async () => {
  const { delta } = makeDelta();
  const empty = new EmptyDeltas();
  expect(await readingsOf(() => empty.has(delta))).toBe(1);
  await eventually(async () => (await readingsOf(() => empty.has(delta))) === 0);
  expect(await empty.has(delta)).toBe(true);
  empty.forget(delta);
  expect(await readingsOf(() => empty.has(delta))).toBe(1);
});

test("the first entry is seen at once, and so is that it went", async () => {
  const { delta, tree } = makeDelta();
  const empty = new EmptyDeltas();
  await eventually(async () => (await readingsOf(() => empty.has(delta))) === 0);
  for (let i = 0; i < 200; i += 1) {
    const entry = join(tree, `file-${i}`);
    if (i % 2 === 0) writeFileSync(entry, "");
    else mkdirSync(entry);
    expect(await empty.has(delta)).toBe(false);
    rmSync(entry, { recursive: true });
    expect(await empty.has(delta)).toBe(true);
  }
});

test("a delta without a tree is empty", async () => {
  const { delta, tree } = makeDelta();
  rmSync(tree, { recursive: true });
  expect(await new EmptyDeltas().has(delta)).toBe(true);
});
