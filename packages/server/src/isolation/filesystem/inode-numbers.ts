import { randomBytes } from "node:crypto";

// Inode numbers are made here and tell nothing about the host. They are 53-bit hashes: of the path for what comes from
// the codebase (two hard links there are two files here), of the delta's inode for what was made in the sandbox (so that
// a rename keeps it). A file that is copied up keeps the number it had. Nothing random goes into the numbers of the
// codebase: after a remount they are the same, or git would read every file of the tree again. Those of the delta are keyed,
// since they would otherwise give the host's away.

const LOW = 0x1_0000_0000;
const TOP_BITS = 0x1f_ffff;
const PATH_SEED = 0x3c6ef372;

export class InodeNumbers {
  readonly #key = randomBytes(8);
  readonly #copiedUp = new Map<number, number>();
  /** Numbers of codebase entries that the sandbox knows by another number, by the number of their path. */
  readonly #handedOver = new Map<number, number>();
  /** The numbers that were handed over: whoever would get one of these by its path gets another. */
  readonly #taken = new Set<number>();
  /** How often a delta's inode number came back after a file took the number made of it into the codebase. */
  readonly #generations = new Map<number, number>();

  /** Of a codebase entry, from its directory's number and its name. */
  ofPath(directory: number, name: string): number {
    const usual = hashOfPath(directory, name);
    if (this.#handedOver.size === 0) return usual;
    const known = this.#handedOver.get(usual);
    if (known !== undefined) return known;
    if (!this.#taken.has(usual)) return usual;
    const other = join(usual % LOW, Math.floor(usual / LOW), 0x5a);
    this.#handedOver.set(usual, other);
    return other;
  }

  /** The delta's entry is in the codebase now, and keeps the number it had. */
  handOver(deltaInode: number, directory: number, name: string): void {
    const [number, usual] = [this.ofDelta(deltaInode), hashOfPath(directory, name)];
    this.#takeBack(usual);
    this.#taken.delete(number); // it has moved on
    if (number !== usual) {
      this.#handedOver.set(usual, number);
      this.#taken.add(number);
    }
    if (!this.#copiedUp.delete(deltaInode)) {
      this.#generations.set(deltaInode, (this.#generations.get(deltaInode) ?? 0) + 1);
    }
  }

  /** Nothing has this path any more; what comes there next is another entry. */
  forgetPath(directory: number, name: string): void {
    if (this.#handedOver.size > 0) this.#takeBack(hashOfPath(directory, name));
  }

  /** Of an entry that lives in the delta. */
  ofDelta(deltaInode: number): number {
    const kept = this.#copiedUp.get(deltaInode);
    if (kept !== undefined) return kept;
    const generation = this.#generations.size === 0 ? 0 : (this.#generations.get(deltaInode) ?? 0);
    const low = (deltaInode % LOW) ^ this.#key.readInt32LE(0);
    const high = Math.floor(deltaInode / LOW) ^ this.#key.readInt32LE(4) ^ Math.imul(generation, 0x9e3779b1);
    return join(Math.imul(low, 0x85ebca6b), Math.imul(high ^ low, 0xc2b2ae35), 0x7f);
  }

  /** The delta's file is the copy of an entry that was known under this number. */
  keep(deltaInode: number, number: number): void {
    this.#copiedUp.set(deltaInode, number);
  }

  /** The delta's file is gone; its inode number may come back for another. */
  release(deltaInode: number): void {
    this.#copiedUp.delete(deltaInode);
  }

  #takeBack(usual: number): void {
    const number = this.#handedOver.get(usual);
    if (number === undefined) return;
    this.#handedOver.delete(usual);
    this.#taken.delete(number);
  }
}

function hashOfPath(directory: number, name: string): number {
  let a = PATH_SEED ^ (directory % LOW);
  let b = PATH_SEED ^ Math.floor(directory / LOW);
  for (let i = 0; i < name.length; i++) {
    const byte = name.charCodeAt(i);
    a = Math.imul(a ^ byte, 0x9e3779b1);
    b = Math.imul(b ^ byte, 0x5f356495);
  }
  return join(a, b, name.length);
}

function join(first: number, second: number, salt: number): number {
  let a = first ^ salt;
  let b = second ^ salt;
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35);
  b = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
  const number = (b & TOP_BITS) * LOW + (a >>> 0);
  // 0 means "deleted" to readdir, 1 is the root's.
  return number < 2 ? number + 2 : number;
}
