import { isDeepStrictEqual } from "node:util";
import type { Attributes, DirectoryEntry, EntryNumbers, Handle } from "../posix/caller.ts";
import type { Step } from "./operations.ts";
import { isErrno, type Side, StepRunner } from "./step-runner.ts";

/** A mount and the processes that use it; each client of one twin has its counterpart at the other. */
export interface Twin {
  readonly root: string;
  readonly clients: readonly Side["caller"][];
}

export interface TwinDifference {
  readonly where: string;
  readonly there: unknown;
  readonly absent: unknown;
}

export interface Comparison {
  /** The moments that times are told by, in nanoseconds: before the codebase was made, and after the mount was ready. */
  readonly madeFromNs: string;
  readonly usedFromNs: string;
  /**
   * Compare what depends on how long the kernel remembers something, too: the order and the offsets of a listing, in which
   * what was removed leaves a hole and what is new comes last, and ctimes, which a copy-up moves on disk.
   */
  readonly remembered: boolean;
}

/**
 * Takes each step on two mounts under equal rules, of which one has hidden entries. Everything a step gives must be equal, but
 * for what no two mounts share: inode numbers, which are compared for their relations by `compareAll`, the clock, of which
 * only the epoch is compared, and times of access, which the host's file system writes down when it likes.
 */
export class HiddenTwins {
  readonly #twins: { readonly there: Twin; readonly absent: Twin };
  readonly #comparison: Comparison;
  readonly #there: readonly StepRunner[];
  readonly #absent: readonly StepRunner[];

  constructor(twins: { there: Twin; absent: Twin }, comparison: Comparison) {
    this.#twins = twins;
    this.#comparison = comparison;
    const runners = ({ root, clients }: Twin) =>
      clients.map((caller) => new StepRunner({ root, caller }, (step, value) => this.#comparable(step, value)));
    this.#there = runners(twins.there);
    this.#absent = runners(twins.absent);
  }

  async take(client: number, step: Step): Promise<"succeeded" | "failed" | "skipped" | TwinDifference> {
    const [runner, other] = [this.#there[client]!, this.#absent[client]!];
    if (!runner.canTake(step)) return "skipped";
    const [there, absent] = await Promise.all([runner.take(step), other.take(step)]);
    if (!isDeepStrictEqual(there, absent)) return { where: "the answer", there, absent };
    return isErrno(there) ? "failed" : "succeeded";
  }

  /** Closes what steps have left open. */
  async closeAll(): Promise<void> {
    for (const runner of [...this.#there, ...this.#absent]) {
      for (const slot of runner.openSlots) await runner.take({ name: "close", args: [{ slot }] });
    }
  }

  /** Compares all that can be seen of both mounts. */
  async compareAll(): Promise<TwinDifference | undefined> {
    const [there, absent] = await Promise.all(
      [this.#twins.there, this.#twins.absent].map(async ({ root, clients }) => ({
        listing: await clients[0]!.listing(root, this.#comparison.madeFromNs),
        numbers: await clients[0]!.numbers(root),
      })),
    );
    for (const path of new Set([...Object.keys(there!.listing), ...Object.keys(absent!.listing)])) {
      const [one, other] = [there!.listing[path], absent!.listing[path]];
      if (!isDeepStrictEqual(one, other)) return { where: `the entry ${path}`, there: one, absent: other };
    }
    const known = new Map<number, number>();
    for (const path of new Set([...Object.keys(there!.numbers), ...Object.keys(absent!.numbers)])) {
      const [one, other] = [there!.numbers[path], absent!.numbers[path]];
      const [shown, shownOther] = [this.#comparableNumbers(one), this.#comparableNumbers(other)];
      if (!isDeepStrictEqual(shown, shownOther)) return { where: `the numbers of ${path}`, there: one, absent: other };
      if (one === undefined || other === undefined || one.errno !== undefined) continue;
      // Two names of one file are that on both sides.
      if ((known.get(one.ino) ?? other.ino) !== other.ino)
        return { where: `the inode of ${path}`, there: one, absent: other };
      known.set(one.ino, other.ino);
    }
    return undefined;
  }

  #comparableNumbers(numbers: EntryNumbers | undefined): unknown {
    if (numbers === undefined || numbers.errno !== undefined) return numbers;
    const { ino, listed, nlink, blocks, mtime } = numbers;
    return { isListed: ino === listed, nlink, blocks, mtime: this.#epoch(mtime) };
  }

  #comparable(step: Step, value: unknown): unknown {
    if (step.name === "stat" || step.name === "lstat" || step.name === "fstat") {
      const { ino, dev, atime, mtime, ctime, ...rest } = value as Attributes;
      const changed = this.#comparison.remembered ? { ctime: this.#epoch(ctime) } : {};
      return { ...rest, ...changed, mtime: this.#epoch(mtime) };
    }
    // The bytes are random, and must be: in a row they would tell of hidden entries between.
    if (step.name === "handle") return { type: (value as Handle).type };
    if (step.name === "listEntries") return this.#comparableListing(value as DirectoryEntry[]);
    return value ?? "ok";
  }

  #comparableListing(entries: readonly DirectoryEntry[]): unknown {
    if (this.#comparison.remembered) return entries.map(({ name, type, offset }) => `${name} ${type} ${offset}`);
    return entries.map(({ name, type }) => `${name} ${type}`).sort();
  }

  /** A time that came with the codebase is told exactly. */
  #epoch(ns: string): string {
    if (BigInt(ns) >= BigInt(this.#comparison.usedFromNs)) return "since the mount";
    return BigInt(ns) >= BigInt(this.#comparison.madeFromNs) ? "when the codebase was made" : ns;
  }
}
