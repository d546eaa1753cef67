import { syscalls } from "@agentfense/fuse";
import type { Node } from "./node.ts";
import type { Quota } from "./quota.ts";

/** The most descriptors that one workspace makes the server hold for open files and orphans. */
const MOST = 4096;

/** A workspace may hold one for so many that are free for all. */
const FREE_FOR_EACH = 4;

const TOTAL = 0;
const USED = 1;

/**
 * The descriptors that all workspaces of a server may hold together, in memory that its mount threads share. What a single
 * one may have shrinks with what is left, so that the next one always finds some.
 */
export class DescriptorBudget {
  readonly buffer: SharedArrayBuffer;
  readonly #numbers: Int32Array;

  /** One that shares the memory of another. */
  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#numbers = new Int32Array(buffer);
  }

  static of(total: number): DescriptorBudget {
    const budget = new DescriptorBudget(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
    budget.#numbers[TOTAL] = total;
    return budget;
  }

  /** One more for a workspace that holds so many; false when that is its share. */
  take(held: number): boolean {
    const free = this.#numbers[TOTAL]! - Atomics.load(this.#numbers, USED);
    if (held >= Math.min(MOST, Math.floor(free / FREE_FOR_EACH))) return false;
    Atomics.add(this.#numbers, USED, 1);
    return true;
  }

  giveBack(count: number): void {
    Atomics.sub(this.#numbers, USED, count);
  }
}

/**
 * What a workspace holds open for its sandbox, one descriptor for each: files that somebody has open, and orphans. An orphan
 * has lost its last name and is open to nobody, but the kernel knows it: it is somebody's working directory, or was opened
 * by O_PATH, or the kernel has not told yet that it forgot it. Orphans make room for others, oldest first, when descriptors
 * or disk space run short, and are ESTALE from then on.
 */
export class Openings {
  readonly #budget: DescriptorBudget;
  readonly #quota: Quota | undefined;
  readonly #stat = new syscalls.Stat();
  /** Oldest first. */
  readonly #orphans = new Set<Node>();
  #held = 0;

  constructor(budget: DescriptorBudget, quota: Quota | undefined) {
    this.#budget = budget;
    this.#quota = quota;
    quota?.used.reclaimers.push(() => this.#dropOldest());
  }

  /** There is room for one more open file, or some orphan can make it. */
  get mayOpen(): boolean {
    if (this.#orphans.size > 0) return true;
    if (!this.#budget.take(this.#held)) return false;
    this.#budget.giveBack(1);
    return true;
  }

  /** The first handle of a file, whose descriptor is in the node. False: there is no room. */
  opened(node: Node): boolean {
    if (!this.#orphans.delete(node)) return this.#take();
    // The file's own descriptor takes the place of the orphan's.
    syscalls.close(node.orphan);
    node.orphan = -1;
    const quota = this.#quota;
    if (quota === undefined) return true;
    quota.used.reclaimable -= node.owed;
    if (this.#isNameless(node, node.fd)) {
      node.owed = 0;
      quota.charge(node, this.#stat);
    } else quota.used.bytes += node.owed;
    return true;
  }

  /** The last handle of a file is closed. */
  closed(node: Node): void {
    const freed = this.#spaceOf(node, node.fd);
    // Reachable by O_PATH only, or not for long: the kernel tells that it forgets a file after it tells that it is closed.
    if (node.removed && node.lookups > 0) this.#adopt(node, node.fd, freed);
    else {
      syscalls.close(node.fd);
      this.#giveBack();
    }
    node.fd = -1;
    node.fdWritable = false;
  }

  /** Keeps a node by this descriptor, which nobody else owns; without room for it the node is ESTALE at once. */
  keep(node: Node, descriptor: number): void {
    if (descriptor < 0) return;
    if (node.orphan < 0 && this.#take()) this.#adopt(node, descriptor, 0);
    else syscalls.close(descriptor);
  }

  /** A file of the delta has lost its last name. Its space is free, unless somebody has it open. */
  unlinked(node: Node): void {
    const quota = this.#quota;
    if (quota === undefined || !node.isRegular || node.openCount > 0) return;
    const freed = quota.free(node);
    if (node.orphan < 0) return;
    node.owed = freed;
    quota.used.reclaimable += freed;
  }

  /** A nameless file that only an orphan's descriptor kept has got a name. */
  named(node: Node): void {
    if (!this.#orphans.has(node)) return;
    const isCharged = node.owed === 0 || syscalls.fstat(node.orphan, this.#stat) < 0;
    this.drop(node);
    if (!isCharged) this.#quota?.charge(node, this.#stat);
  }

  /** A file takes another number of blocks than before. */
  settle(node: Node, stat: syscalls.Stat): void {
    const quota = this.#quota;
    if (quota === undefined) return;
    if (stat.nlink > 0 || node.openCount > 0) quota.settle(node, stat);
    else if (this.#orphans.has(node)) {
      quota.charge(node, stat);
      const charge = quota.free(node);
      quota.used.reclaimable += charge - node.owed;
      node.owed = charge;
    }
  }

  /** Nobody knows the node any more. */
  drop(node: Node): void {
    if (!this.#orphans.delete(node)) return;
    syscalls.close(node.orphan);
    node.orphan = -1;
    if (this.#quota) this.#quota.used.reclaimable -= node.owed;
    node.owed = 0;
    this.#giveBack();
  }

  /** The mount is gone. */
  close(): void {
    for (const node of this.#orphans) syscalls.close(node.orphan);
    this.#orphans.clear();
    this.#budget.giveBack(this.#held);
    this.#held = 0;
  }

  #adopt(node: Node, descriptor: number, owed: number): void {
    node.orphan = descriptor;
    node.owed = owed;
    if (this.#quota) this.#quota.used.reclaimable += owed;
    this.#orphans.add(node);
  }

  #take(): boolean {
    while (!this.#budget.take(this.#held)) if (!this.#dropOldest()) return false;
    this.#held += 1;
    return true;
  }

  #dropOldest(): boolean {
    const [oldest] = this.#orphans;
    if (oldest !== undefined) this.drop(oldest);
    return oldest !== undefined;
  }

  #giveBack(): void {
    this.#held -= 1;
    this.#budget.giveBack(1);
  }

  // Takes what an open file without a name uses out of the account.
  #spaceOf(node: Node, descriptor: number): number {
    const quota = this.#quota;
    if (quota === undefined) return 0;
    if (node.countedNameless) quota.takeFiles(-1);
    node.countedNameless = false;
    const owed = node.owed;
    quota.used.bytes -= owed;
    node.owed = 0;
    return owed + (this.#isNameless(node, descriptor) ? quota.free(node) : 0);
  }

  /** A file of the delta without a name; `#stat` describes it. */
  #isNameless(node: Node, descriptor: number): boolean {
    if (!node.inDelta || !node.isRegular || !node.removed) return false;
    return syscalls.fstat(descriptor, this.#stat) === 0 && this.#stat.nlink === 0;
  }
}
