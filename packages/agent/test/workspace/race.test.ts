import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rounds } from "../../../../test/support/rounds.ts";
import { PathTraversalError, WorkspaceError } from "../../src/errors.ts";
import { AgentWorkspace } from "../../src/workspace/agent-workspace.ts";

// While a thread swaps the directory "inner" and a link to a directory outside, nothing outside is read or changed.

const base = mkdtempSync(join(tmpdir(), "agentfense-race-"));
const outside = join(base, "outside");
const workspace = new AgentWorkspace("session", { directory: join(base, "workspace") });
const stop = new Int32Array(new SharedArrayBuffer(4));
let racing: Promise<unknown>;
let failure: unknown;

beforeAll(() => {
  mkdirSync(join(outside, "sub"), { recursive: true });
  for (const path of ["file", "victim", "sub/victim", "only-outside"]) writeFileSync(join(outside, path), "outside");
  mkdirSync(join(workspace.directory, "inner/sub"), { recursive: true });
  writeFileSync(join(workspace.directory, "inner/file"), "inside");
  const racer = new Worker(join(import.meta.dirname, "racer.ts"), {
    workerData: { directory: join(workspace.directory, "inner"), outside, stop },
  });
  racing = once(racer, "exit");
  racing.catch((error: unknown) => {
    failure = error;
  });
});

afterAll(async () => {
  Atomics.store(stop, 0, 1);
  await racing;
  rmSync(base, { recursive: true });
});

/** Repeats something until it has succeeded and been caught by the racer often enough. */
async function race(attempt: (round: number) => Promise<unknown>): Promise<void> {
  const wanted = rounds(20);
  let successes = 0;
  let refusals = 0;
  for (let round = 0; successes < wanted || refusals < wanted; round += 1) {
    if (failure !== undefined) throw new Error("the racer gave up", { cause: failure });
    try {
      await attempt(round);
      successes += 1;
    } catch (error) {
      if (error instanceof PathTraversalError) refusals += 1;
      // Between the two there is nothing for a moment, or what there was is gone when it is looked at again.
      else if (!(error instanceof WorkspaceError)) throw error;
    }
  }
}

test("reading reads inside, or is refused", async () => {
  await race(async () => expect(await workspace.readFile("inner/file")).toBe("inside"));
});

test("a list shows what is inside", async () => {
  await race(async () => {
    for (const { path } of await workspace.list("inner", { recursive: true })) expect(path).not.toContain("outside");
  });
  await race(async () => {
    const entries = await workspace.list("", { recursive: true });
    for (const { path } of entries) expect(path).not.toContain("outside");
    // Never refused: it follows no link. Counted as both.
    if (entries.some(({ kind }) => kind === "symlink")) throw new PathTraversalError("seen as a link");
  });
});

test("writing writes inside", async () => {
  await race((round) => workspace.writeFile(`inner/new-${round % 10}`, "written"));
  await race(() => workspace.writeFile("inner/file", "inside"));
  expect(readdirSync(outside).sort()).toEqual(["file", "only-outside", "sub", "victim"]);
  expect(readFileSync(join(outside, "file"), "utf8")).toBe("outside");
});

test("deleting deletes inside", async () => {
  await race(async () => {
    await workspace.writeFile("inner/victim", "inside");
    await workspace.delete("inner/victim");
  });
  await race(async () => {
    await workspace.writeFile("inner/sub/victim", "inside");
    await workspace.delete("inner/sub", { recursive: true });
  });
  expect(readFileSync(join(outside, "victim"), "utf8")).toBe("outside");
  expect(readFileSync(join(outside, "sub/victim"), "utf8")).toBe("outside");
});

test("stat tells of what is inside", async () => {
  await race(async () => {
    expect(await workspace.stat("inner/only-outside").catch(notFound)).toBe("not found");
  });
});

function notFound(error: unknown): string {
  if (error instanceof WorkspaceError && error.code === "NOT_FOUND") return "not found";
  throw error;
}
