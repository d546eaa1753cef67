export type Role = "admin" | "user" | "read-only";

/** Who asks. Every method of the runtime that touches an owner's things takes one. */
export interface Caller {
  /**
   * | value     | may see                | owns what it makes            |
   * | a string  | that owner's, alone    | that owner                    |
   * | undefined | everybody's (an admin key, or a server without keys) | the owner the request names |
   */
  readonly ownerId: string | undefined;
  readonly role: Role;
  /** Absent on a server without keys. */
  readonly keyId?: string;
}

/** The server itself: restarts, expiry, sync. */
export const SERVER: Caller = { ownerId: undefined, role: "admin" };

/** A foreign object is as absent as one that never was. */
export function maySee(caller: Caller, ownerId: string): boolean {
  return caller.ownerId === undefined || caller.ownerId === ownerId;
}
