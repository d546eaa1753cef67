import { readFileSync } from "node:fs";
import { HOME } from "../backend/backend.ts";
import { pickBoxOwner } from "../backend/box-owner.ts";
import type { Owner } from "../filesystem/presentation.ts";

/** Who every box shows its processes to be; the kernel of the host knows them as the box's owner. */
export const INSIDE = { uid: 1000, gid: 1000, name: "agent", home: HOME } as const;

/** The user of last resort, where no other one exists: in containers that map a few thousand ids only. */
const NOBODY: Owner = { uid: 65_534, gid: 65_534 };

/** Hands out the users boxes run as; see pickBoxOwner. */
export class BoxOwners {
  readonly isRoot = process.geteuid?.() === 0;
  /** What is lost when no user of its own can be had for a box. */
  readonly degradations: readonly string[];
  readonly #isMapped: boolean;
  readonly #used = new Set<number>();

  constructor(
    uidMap = readFileSync("/proc/self/uid_map", "utf8"),
    gidMap = readFileSync("/proc/self/gid_map", "utf8"),
  ) {
    const highest = 2_147_483_646;
    this.#isMapped = !this.isRoot || (maps(uidMap, highest) && maps(gidMap, highest));
    this.degradations = this.#isMapped
      ? []
      : ["The server's user namespace maps too few users: all boxes share the user nobody on the host."];
  }

  take(): Owner {
    if (!this.#isMapped) return NOBODY;
    let owner = pickBoxOwner();
    while (this.isRoot && this.#used.has(owner.uid)) owner = pickBoxOwner();
    this.#used.add(owner.uid);
    return owner;
  }

  giveBack(owner: Owner): void {
    this.#used.delete(owner.uid);
  }
}

/** Whether ids as high as the ones for boxes exist here: a map that reaches so high is the host's own, without holes. */
function maps(text: string, id: number): boolean {
  return text
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .some(([first = 0, , length = 0]) => first <= 1_879_048_192 && id < first + length);
}
