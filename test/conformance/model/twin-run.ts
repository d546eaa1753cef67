import { dirname, relative } from "node:path";
import type { Attributes, Caller } from "../posix/caller.ts";
import { SystemCallError } from "../posix/caller.ts";
import type { Argument, Step } from "./operations.ts";

/** A tree and the process that works in it. */
export interface Side {
  readonly root: string;
  readonly caller: Caller;
}

export interface Difference {
  readonly step: Step;
  readonly expected: unknown;
  readonly got: unknown;
}

/**
 * Takes each step on the mount and in a plain directory and compares what came of it.
 *
 * The one accepted difference is the rename of a directory that exists in the codebase layer: EXDEV on the mount, and
 * the step is left out in the plain directory. Such a directory therefore never changes its path, so a set of paths
 * is a complete model of which directories these are.
 */
export class TwinRun {
  readonly #mount: Side;
  readonly #plain: Side;
  readonly #lowerDirectories: Set<string>;
  readonly #recentFromNs: string;
  readonly #slots = new Map<number, { readonly mount: number; readonly plain: number }>();

  constructor(sides: { mount: Side; plain: Side }, lowerDirectories: Iterable<string>, recentFromNs: string) {
    this.#mount = sides.mount;
    this.#plain = sides.plain;
    this.#lowerDirectories = new Set(lowerDirectories);
    this.#recentFromNs = recentFromNs;
  }

  /** Takes one step on both sides. It is skipped when it names a slot that is not open. */
  async take(step: Step): Promise<{ result: "succeeded" | "failed" | "skipped" | "lost" } | Difference> {
    const slots = step.args.filter((argument) => typeof argument === "object" && "slot" in argument);
    if (slots.some(({ slot }) => !this.#slots.has(slot))) return { result: "skipped" };

    const renamed = step.name === "rename" || step.name === "rename2" ? await this.#renamedPaths(step) : undefined;
    const got = await this.#run(this.#mount, step);
    // The daemon is gone: whether the mount took this step is to be found out, and the plain side has not taken it yet.
    if (got === "ENOTCONN" || got === "ECONNABORTED") return { result: "lost" };
    if (renamed?.lower && (got === "EXDEV" || got === "ok")) {
      const sameName = renamed.source === renamed.target;
      return got === "EXDEV" || sameName ? { result: "failed" } : { step, expected: "EXDEV", got };
    }
    const expected = await this.#run(this.#plain, step);
    if (JSON.stringify(got) !== JSON.stringify(expected)) return { step, expected, got };
    if (isErrno(got)) return { result: "failed" };

    if (step.name === "rmdir") this.#lowerDirectories.delete(await this.#inTree(step.args[0]));
    // An empty directory of the codebase that something was moved onto is gone; nothing from below shows through.
    if (renamed !== undefined && renamed.source !== renamed.target) this.#lowerDirectories.delete(renamed.target);
    return { result: "succeeded" };
  }

  /** Takes a step that was lost on the mount on the plain side, unless the mount would have answered EXDEV. */
  async takeOnPlain(step: Step): Promise<void> {
    const renamed = step.name === "rename" || step.name === "rename2" ? await this.#renamedPaths(step) : undefined;
    if (!renamed?.lower) await this.#run(this.#plain, step);
  }

  async closeAll(): Promise<void> {
    for (const slot of [...this.#slots.keys()]) await this.take({ name: "close", args: [{ slot }] });
  }

  async #run(side: Side, step: Step): Promise<unknown> {
    const key = side === this.#mount ? "mount" : "plain";
    const args = step.args.map((argument) => this.#resolve(side.root, key, argument));
    try {
      const value = await side.caller.call(step.name, ...args);
      if (step.opens !== undefined) return this.#opened(step.opens, key, value as number);
      if (step.name === "close") return this.#closed(step.args[0], key);
      return this.#comparable(step, value);
    } catch (error) {
      if (error instanceof SystemCallError) return error.code;
      throw error;
    }
  }

  #resolve(root: string, key: "mount" | "plain", argument: Argument): string | number {
    if (typeof argument !== "object") return argument;
    if ("path" in argument) return `${root}/${argument.path}`;
    const slot = this.#slots.get(argument.slot);
    // The plain side closes last and then drops the slot.
    return slot === undefined ? -1 : slot[key];
  }

  #opened(slot: number, key: "mount" | "plain", descriptor: number): string {
    const known = this.#slots.get(slot) ?? { mount: -1, plain: -1 };
    this.#slots.set(slot, { ...known, [key]: descriptor });
    return "opened";
  }

  #closed(argument: Argument | undefined, key: "mount" | "plain"): string {
    if (key === "plain" && typeof argument === "object" && "slot" in argument) this.#slots.delete(argument.slot);
    return "closed";
  }

  #comparable(step: Step, value: unknown): unknown {
    if (step.name === "stat" || step.name === "lstat" || step.name === "fstat") {
      return comparableAttributes(value as Attributes, this.#recentFromNs);
    }
    if (step.name === "listxattr") return (value as string[]).filter((name) => name.startsWith("user."));
    return value ?? "ok";
  }

  /** Where a rename really works, with symbolic links on the way resolved, and whether it moves a lower directory. */
  async #renamedPaths(step: Step): Promise<{ source: string; target: string; lower: boolean }> {
    const [source, target] = await Promise.all([this.#inTree(step.args[0]), this.#inTree(step.args[1])]);
    const exchanged = step.args[2] === "EXCHANGE" && this.#lowerDirectories.has(target);
    return { source, target, lower: this.#lowerDirectories.has(source) || exchanged };
  }

  async #inTree(argument: Argument | undefined): Promise<string> {
    if (typeof argument !== "object" || !("path" in argument)) throw new Error("the step names no path");
    const path = `${this.#plain.root}/${argument.path.replace(/\/+$/, "")}`;
    const parent = await this.#plain.caller.realpath(dirname(path));
    return relative(this.#plain.root, `${parent}/${path.slice(path.lastIndexOf("/") + 1)}`);
  }
}

/** What stat(2) must say alike on both sides: not inode numbers, block counts or times of access. */
function comparableAttributes(found: Attributes, recentFromNs: string): unknown {
  const { type, mode, uid, gid, size, nlink } = found;
  // What goes through a FIFO moves its times on some file systems; nobody is promised either.
  const recent = type === "fifo" || BigInt(found.mtime) >= BigInt(recentFromNs);
  const mtime = recent ? "recent" : found.mtime;
  return type === "directory" ? { type, mode, uid, gid, mtime } : { type, mode, uid, gid, mtime, size, nlink };
}

function isErrno(result: unknown): boolean {
  return typeof result === "string" && /^E[A-Z0-9]+$/.test(result);
}
