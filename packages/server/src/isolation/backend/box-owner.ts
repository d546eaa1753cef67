import { randomInt } from "node:crypto";
import type { Owner } from "../filesystem/presentation.ts";

// Above every id that distributions hand out (users, systemd's dynamic ones, subordinate ranges), below the sign bit.
const FIRST = 1_879_048_192;
const LAST = 2_147_483_646;

/**
 * Who a box's processes are to the host's kernel. A root server gives every box a user that owns nothing on this host and
 * that no other box has, so that signals, /proc and keyrings do not cross; any other server can only be itself.
 */
export function pickBoxOwner(): Owner {
  const uid = process.getuid?.() ?? 0;
  return uid === 0 ? unusedOwner() : { uid, gid: process.getgid?.() ?? uid };
}

/** A user and group nobody else has. */
export function unusedOwner(): Owner {
  const id = randomInt(FIRST, LAST + 1);
  return { uid: id, gid: id };
}
