import type { Caller, Role } from "../caller.ts";
import type { KeyRecord } from "../store/store.ts";

/** API keys. A secret is `af_<id>_<random>`; only its hash is stored. */
export interface Keys {
  /** The owner and role behind a secret; throws UNAUTHENTICATED for a wrong, unknown or revoked one. */
  authenticate(secret: string): Promise<Caller>;
  /** The owner and role of a key; undefined when there is none, or it was revoked. */
  callerOf(id: string): Promise<Caller | undefined>;
  create(request: {
    readonly ownerId: string;
    readonly role: Role;
    readonly name: string;
  }): Promise<{ readonly key: KeyRecord; readonly secret: string }>;
  list(): Promise<readonly KeyRecord[]>;
  /** KEY_NOT_FOUND when there is none. */
  revoke(id: string): Promise<void>;
}
