import { readFileSync } from "node:fs";
import type { Caller } from "@agentfense/fuse";
import type { Node } from "./node.ts";

export const Access = { READ: 4, WRITE: 2, EXECUTE: 1 } as const;

const STICKY = 0o1000;

/**
 * POSIX permission bits for callers that are not root, decided here because the kernel's own check
 * (`default_permissions`) costs a request per change. The rules are decided elsewhere and always apply as well.
 */
export class Credentials {
  /** Everything belongs to this user as far as the sandbox can see: for him the rules alone decide, others stay out. */
  readonly #ownerOfAll: number | undefined;
  /** Only the user who mounted gets in. */
  readonly #oneUser: boolean;

  constructor(options: { ownerOfAll: number | undefined; oneUser: boolean }) {
    this.#ownerOfAll = options.ownerOfAll;
    this.#oneUser = options.oneUser;
  }

  /** Nobody's bits need a look for this caller. */
  bypasses(caller: Caller): boolean {
    return caller.uid === 0 || caller.uid === this.#ownerOfAll;
  }

  may(caller: Caller, node: Node, access: number): boolean {
    if (this.bypasses(caller)) return true;
    if (this.#ownerOfAll !== undefined) return false;
    const shift = node.uid === caller.uid ? 6 : this.inGroup(caller, node.gid) ? 3 : 0;
    return ((node.mode >> shift) & 7 & access) === access;
  }

  /** Every directory above can be searched. */
  canReach(caller: Caller, node: Node): boolean {
    if (this.bypasses(caller)) return true;
    if (this.#ownerOfAll !== undefined) return false;
    for (let directory = node.parent; directory !== undefined; directory = directory.parent) {
      if (!this.may(caller, directory, Access.EXECUTE)) return false;
    }
    return true;
  }

  owns(caller: Caller, node: Node): boolean {
    return this.bypasses(caller) || (this.#ownerOfAll === undefined && node.uid === caller.uid);
  }

  /** In a sticky directory only the owner of the entry or of the directory may take the entry away. */
  mayRemove(caller: Caller, directory: Node, entry: Node): boolean {
    if (this.bypasses(caller)) return true;
    if ((directory.mode & STICKY) === 0) return true;
    return directory.uid === caller.uid || entry.uid === caller.uid;
  }

  /**
   * Somebody who uses the mount may not search this directory. What the kernel remembers of the names in it would let them
   * pass, so it must ask each time.
   */
  keepsOut(directory: Node): boolean {
    if (this.#ownerOfAll !== undefined) return false;
    const everyone = this.#oneUser ? 0o100 : 0o111;
    return (directory.mode & everyone) !== everyone;
  }

  inGroup(caller: Caller, gid: number): boolean {
    return caller.gid === gid || supplementaryGroups(caller.pid).includes(gid);
  }
}

// Not in the request; asked for only when the answer depends on it.
function supplementaryGroups(pid: number): number[] {
  if (pid === 0) return [];
  try {
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    const line = /^Groups:\s*(.*)$/m.exec(status)?.[1] ?? "";
    return line.split(/\s+/).filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
