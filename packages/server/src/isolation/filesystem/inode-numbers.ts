import { randomBytes } from "node:crypto";

// Inode numbers are made here and tell nothing about the host. They are 53-bit hashes: of the path for what comes from
// the codebase (two hard links there are two files here), of the delta's inode for what was made in the sandbox (so that
// a rename keeps it). A file that is copied up keeps the number it had.

const LOW = 0x1_0000_0000;
const TOP_BITS = 0x1f_ffff;

export class InodeNumbers {
  readonly #key1: number;
  readonly #key2: number;
  readonly #copiedUp = new Map<number, number>();

  constructor() {
    const key = randomBytes(8);
    this.#key1 = key.readInt32LE(0);
    this.#key2 = key.readInt32LE(4);
  }

  /** Of a codebase entry, from its directory's number and its name. */
  ofPath(directory: number, name: string): number {
    let a = this.#key1 ^ (directory % LOW);
    let b = this.#key2 ^ Math.floor(directory / LOW);
    for (let i = 0; i < name.length; i++) {
      const byte = name.charCodeAt(i);
      a = Math.imul(a ^ byte, 0x9e3779b1);
      b = Math.imul(b ^ byte, 0x5f356495);
    }
    return join(a, b, name.length);
  }

  /** Of an entry that lives in the delta. */
  ofDelta(deltaInode: number): number {
    const kept = this.#copiedUp.get(deltaInode);
    if (kept !== undefined) return kept;
    const low = deltaInode % LOW | 0;
    const high = Math.floor(deltaInode / LOW);
    return join(Math.imul(this.#key1 ^ low, 0x85ebca6b), Math.imul(this.#key2 ^ high ^ low, 0xc2b2ae35), 0x7f);
  }

  /** The delta's file is the copy of an entry that was known under this number. */
  keep(deltaInode: number, number: number): void {
    this.#copiedUp.set(deltaInode, number);
  }

  /** The delta's file is gone; its inode number may come back for another. */
  release(deltaInode: number): void {
    this.#copiedUp.delete(deltaInode);
  }
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
