import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Errno, syscalls } from "@agentfense/fuse";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Delta } from "../../../src/isolation/filesystem/delta.ts";

const EXT4 = 0xef53;

describe("a delta", () => {
  let place: string;
  let delta: Delta;

  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), "agentfense-delta-"));
    delta = Delta.open(place, undefined);
  });
  afterEach(() => {
    delta.close();
    rmSync(place, { recursive: true });
  });

  test("is two directories, and where it is made is as it was", () => {
    const modes = readdirSync(place).map((name) => [name, statSync(join(place, name)).mode & 0o777]);
    expect(modes.toSorted()).toEqual([
      ["tree", 0o755 & ~process.umask()],
      ["work", 0o700],
    ]);
    if (statfsSync(place).type === EXT4)
      expect(execFileSync("lsattr", ["-d", place], { encoding: "utf8" })).not.toMatch(/^\S*T/);
  });

  test.each([
    ["has no name before it is complete", () => delta.tree, []],
    // Nobody makes files in /proc.
    ["is in work before it is complete where a disk knows no nameless files", () => openDirectory("/proc"), ["tmp"]],
  ])("a new file %s", (_, begunFor, inWork) => {
    const directory = begunFor();
    const draft = delta.begin(directory, 0o640);
    if (typeof draft === "number") throw new Error(`errno ${-draft}`);
    syscalls.pwrite(draft.fd, Buffer.from("content"), 7, 0);
    const names = (): string[] => readdirSync(join(place, "work")).map((name) => name.split("-")[0]!);
    expect([readdirSync(join(place, "tree")), names()]).toEqual([[], inWork]);
    expect(delta.install(draft, delta.tree, "file")).toBe(0);
    expect([readFileSync(join(place, "tree/file"), "utf8"), names()]).toEqual(["content", []]);
    syscalls.close(draft.fd);
    if (directory !== delta.tree) syscalls.close(directory);
  });

  test.each([
    ["nameless", () => delta.tree],
    ["in work", () => openDirectory("/proc")],
  ])("a new file (%s) that is given up leaves nothing", (_, begunFor) => {
    const directory = begunFor();
    const draft = delta.begin(directory, 0o640);
    if (typeof draft === "number") throw new Error(`errno ${-draft}`);
    delta.discard(draft);
    syscalls.close(draft.fd);
    expect([readdirSync(join(place, "tree")), readdirSync(join(place, "work"))]).toEqual([[], []]);
    if (directory !== delta.tree) syscalls.close(directory);
  });

  test("that is open cannot be opened again", () => {
    expect(() => Delta.open(place, undefined)).toThrow("in use by another mount");
    expect(delta.begin(-1, 0o600)).toBe(-Errno.EBADF);
  });
});

function openDirectory(path: string): number {
  return syscalls.open(path, syscalls.Open.PATH | syscalls.Open.DIRECTORY);
}
