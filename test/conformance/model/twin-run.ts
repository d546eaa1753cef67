import { dirname, relative } from "node:path";
import type { Attributes } from "../posix/caller.ts";
import type { Argument, Step } from "./operations.ts";
import { isErrno, type Side, StepRunner } from "./step-runner.ts";

export interface Difference {
  readonly step: Step;
  readonly expected: unknown;
  readonly got: unknown;
}

/**
 * Takes each step on the mount and in a plain directory and compares what came of it.
 *
 * The one accepted difference is the rename of a directory that exists in the codebase layer, or in a snapshot: EXDEV on the mount, and
 * the step is left out in the plain directory. Such a directory therefore never changes its path, so a set of paths
 * is a complete model of which directories these are.
 */
export class TwinRun {
  readonly #mount: StepRunner;
  readonly #plain: StepRunner;
  readonly #plainSide: Side;
  #lowerDirectories: Set<string>;

  constructor(sides: { mount: Side; plain: Side }, lowerDirectories: Iterable<string>, recentFromNs: string) {
    const comparable = (step: Step, value: unknown) => comparableValue(step, value, recentFromNs);
    this.#mount = new StepRunner(sides.mount, comparable);
    this.#plain = new StepRunner(sides.plain, comparable);
    this.#plainSide = sides.plain;
    this.#lowerDirectories = new Set(lowerDirectories);
  }

  /** Takes one step on both sides. It is skipped when it names a slot that is not open. */
  async take(step: Step): Promise<{ result: "succeeded" | "failed" | "skipped" | "lost" } | Difference> {
    if (!this.#mount.canTake(step)) return { result: "skipped" };

    const renamed = step.name === "rename" || step.name === "rename2" ? await this.#renamedPaths(step) : undefined;
    const got = await this.#mount.take(step);
    // The daemon is gone: whether the mount took this step is to be found out, and the plain side has not taken it yet.
    if (got === "ENOTCONN" || got === "ECONNABORTED") return { result: "lost" };
    if (renamed?.lower && (got === "EXDEV" || got === "ok")) {
      const sameName = renamed.source === renamed.target;
      return got === "EXDEV" || sameName ? { result: "failed" } : { step, expected: "EXDEV", got };
    }
    const expected = await this.#plain.take(step);
    if (JSON.stringify(got) !== JSON.stringify(expected)) return { step, expected, got };
    if (isErrno(got)) return { result: "failed" };

    if (step.name === "rmdir") this.#lowerDirectories.delete(await this.#inTree(step.args[0]));
    // An empty directory of the codebase that something was moved onto is gone; nothing from below shows through.
    if (renamed !== undefined && renamed.source !== renamed.target) this.#lowerDirectories.delete(renamed.target);
    return { result: "succeeded" };
  }

  /** A snapshot was taken: directories that are there now move no more. */
  frozen(directories: Iterable<string>): void {
    this.#lowerDirectories = new Set(directories);
  }

  /** Takes a step that was lost on the mount on the plain side, unless the mount would have answered EXDEV. */
  async takeOnPlain(step: Step): Promise<void> {
    const renamed = step.name === "rename" || step.name === "rename2" ? await this.#renamedPaths(step) : undefined;
    if (!renamed?.lower) await this.#plain.take(step);
  }

  async closeAll(): Promise<void> {
    for (const slot of this.#mount.openSlots) await this.take({ name: "close", args: [{ slot }] });
  }

  /** Where a rename really works, with symbolic links on the way resolved, and whether it moves a lower directory. */
  async #renamedPaths(step: Step): Promise<{ source: string; target: string; lower: boolean }> {
    const [source, target] = await Promise.all([this.#inTree(step.args[0]), this.#inTree(step.args[1])]);
    const exchanged = step.args[2] === "EXCHANGE" && this.#lowerDirectories.has(target);
    return { source, target, lower: this.#lowerDirectories.has(source) || exchanged };
  }

  async #inTree(argument: Argument | undefined): Promise<string> {
    if (typeof argument !== "object" || !("path" in argument)) throw new Error("the step names no path");
    const path = `${this.#plainSide.root}/${argument.path.replace(/\/+$/, "")}`;
    const parent = await this.#plainSide.caller.realpath(dirname(path));
    return relative(this.#plainSide.root, `${parent}/${path.slice(path.lastIndexOf("/") + 1)}`);
  }
}

function comparableValue(step: Step, value: unknown, recentFromNs: string): unknown {
  if (step.name === "stat" || step.name === "lstat" || step.name === "fstat") {
    return comparableAttributes(value as Attributes, recentFromNs);
  }
  if (step.name === "listxattr") return (value as string[]).filter((name) => name.startsWith("user."));
  return value ?? "ok";
}

/** What stat(2) must say alike on both sides: not inode numbers, block counts or times of access. */
function comparableAttributes(found: Attributes, recentFromNs: string): unknown {
  const { type, mode, uid, gid, size, nlink } = found;
  // What goes through a FIFO moves its times on some file systems; nobody is promised either.
  const recent = type === "fifo" || BigInt(found.mtime) >= BigInt(recentFromNs);
  const mtime = recent ? "recent" : found.mtime;
  return type === "directory" ? { type, mode, uid, gid, mtime } : { type, mode, uid, gid, mtime, size, nlink };
}
