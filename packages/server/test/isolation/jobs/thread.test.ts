import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { syscalls } from "@agentfense/fuse";
import { expect, onTestFinished, test } from "vitest";
import { JobThread } from "../../../src/isolation/jobs/thread.ts";
import { ThreadError } from "../../../src/isolation/threads/answering-thread.ts";

const CODEBASE = "cb_0123456789abcdef";

/** A storage directory with one codebase, by descriptor. */
function storage(): { readonly path: string; readonly root: number } {
  const path = mkdtempSync(join(tmpdir(), "agentfense-jobs-"));
  for (const part of ["tree", "staging/up", "kept", "pinned"])
    mkdirSync(join(path, CODEBASE, part), { recursive: true });
  const root = syscalls.open(path, syscalls.Open.RDONLY | syscalls.Open.DIRECTORY);
  onTestFinished(() => {
    syscalls.close(root);
    rmSync(path, { recursive: true, force: true });
  });
  return { path, root };
}

test("a job runs on another thread, with descriptors of this one", async () => {
  const { path, root } = storage();
  writeFileSync(join(path, CODEBASE, "staging/up/a"), "12345");
  await using jobs = new JobThread({ threads: 2 });
  const files = [
    { name: "a", size: 5 },
    { name: "b", size: 1 },
  ];
  const many = Array.from({ length: 20 }, () =>
    jobs.run("inspectStaged", { root, codebase: CODEBASE, upload: "up", files }),
  );
  expect(await Promise.all(many)).toEqual(many.map(() => ["b"]));
});

test("a thread starts with its first job, and one more when that has something to do", async () => {
  const { root } = storage();
  const threads = () => {
    const names = readdirSync("/proc/self/task").map((id) => readFileSync(`/proc/self/task/${id}/comm`, "utf8").trim());
    return names.filter((name) => name === "agentfense-jobs").length;
  };
  await using jobs = new JobThread({ threads: 2 });
  const job = () => jobs.run("inspectStaged", { root, codebase: CODEBASE, upload: "up", files: [] });
  expect(threads()).toBe(0);
  await job();
  await job();
  expect(threads()).toBe(1);
  await Promise.all([job(), job(), job()]);
  expect(threads()).toBe(2);
});

test("what a job throws arrives with its errno, and the thread goes on", async () => {
  const { root } = storage();
  await using jobs = new JobThread({ threads: 1 });
  const failing = jobs.run("inspectStaged", { root, codebase: CODEBASE, upload: "missing", files: [] });
  const error = await failing.catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ThreadError);
  expect(error).toMatchObject({ name: "SystemError", code: "ENOENT", errno: 2 });
  expect(await jobs.run("inspectStaged", { root, codebase: CODEBASE, upload: "up", files: [] })).toEqual([]);
});

test("an aborted signal reaches the job", async () => {
  const { path, root } = storage();
  writeFileSync(join(path, CODEBASE, "tree/big"), Buffer.alloc(200 << 20, 1));
  await using jobs = new JobThread({ threads: 1 });
  const before = AbortSignal.abort();
  const input = {
    root,
    codebase: CODEBASE,
    upload: "up",
    copies: [{ from: { in: "tree", path: "big" }, staged: "c", share: false }],
  } as const;
  await expect(jobs.run("copyContents", input, { signal: before })).rejects.toThrow("aborted");
  const during = new AbortController();
  const copying = jobs.run("copyContents", input, { signal: during.signal });
  during.abort();
  await expect(copying).rejects.toThrow("aborted");
});

test("closing waits for what runs, and nothing runs after it", async () => {
  const { root } = storage();
  const jobs = new JobThread({ threads: 1 });
  const running = jobs.run("inspectStaged", { root, codebase: CODEBASE, upload: "up", files: [] });
  await jobs[Symbol.asyncDispose]();
  expect(await running).toEqual([]);
  await expect(jobs.run("inspectStaged", { root, codebase: CODEBASE, upload: "up", files: [] })).rejects.toThrow(
    "closed",
  );
});
