import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Caller, Role } from "../caller.ts";
import { RuntimeError } from "../runtime-error.ts";
import type { KeyMetadata, KeyRecord } from "../store/store.ts";
import type { Keys } from "./api.ts";

/** When a key was last used is kept to the minute, so that a busy client does not write at every call. */
const TOUCH_INTERVAL_MS = 60_000;
const LONGEST_TEXT = 128;
const ROLES: ReadonlySet<string> = new Set(["admin", "user", "read-only"] satisfies Role[]);

/** Nothing is remembered between calls: a key that another process revokes is refused at once. */
export function openKeys(options: { readonly store: KeyMetadata; readonly clock?: () => number }): Keys {
  const { store, clock = Date.now } = options;
  const touching = new Set<string>();

  async function touch(key: KeyRecord): Promise<void> {
    const now = clock();
    if (touching.has(key.id) || now - (key.lastUsedAtMs ?? Number.NEGATIVE_INFINITY) < TOUCH_INTERVAL_MS) return;
    touching.add(key.id);
    try {
      await store.touchKey(key.id, now);
    } finally {
      touching.delete(key.id);
    }
  }

  return {
    async authenticate(secret) {
      const id = keyIdOf(secret);
      if (id === undefined) throw unauthenticated();
      const key = await store.key(id);
      const matches = secretMatches(secret, key?.secretHash);
      if (key === undefined || !matches || key.revokedAtMs !== undefined) throw unauthenticated();
      await touch(key);
      return callerOf(key);
    },
    async callerOf(id) {
      const key = await store.key(id);
      return key === undefined || key.revokedAtMs !== undefined ? undefined : callerOf(key);
    },
    async create({ ownerId, role, name }) {
      if (!ROLES.has(role)) throw new RuntimeError("INVALID_ARGUMENT", "role must be admin, user or read-only");
      // An admin key belongs to nobody in particular; its owner is only a note about who has it.
      if (ownerId !== "" || role !== "admin") checkText("owner_id", ownerId);
      if (name !== "") checkText("name", name);
      const { id, secret } = newSecret();
      const key: KeyRecord = { id, ownerId, role, name, secretHash: hashSecret(secret), createdAtMs: clock() };
      await store.insertKey(key);
      return { key, secret };
    },
    list: () => store.listKeys(),
    async revoke(id) {
      if (!isKeyId(id) || !(await store.revokeKey(id, clock()))) {
        throw new RuntimeError("KEY_NOT_FOUND", "there is no such API key", {
          hint: "list the keys: agentfense key list",
        });
      }
    },
  };
}

function callerOf(key: KeyRecord): Caller {
  return { ownerId: key.role === "admin" ? undefined : key.ownerId, role: key.role, keyId: key.id };
}

/** The same words for every reason: which of them it was is not the caller's to know. */
function unauthenticated(): RuntimeError {
  return new RuntimeError("UNAUTHENTICATED", "the API key is not valid", {
    hint: "an administrator makes one with: agentfense key create",
  });
}

/** C0, DEL, C1, and what else breaks or reorders a line. */
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

function checkText(field: string, text: string): void {
  const fault =
    text === ""
      ? "must not be empty"
      : text.length > LONGEST_TEXT
        ? `must have at most ${LONGEST_TEXT} characters`
        : UNPRINTABLE.test(text) || !text.isWellFormed()
          ? "must not contain control characters"
          : undefined;
  if (fault !== undefined) throw new RuntimeError("INVALID_ARGUMENT", `${field} ${fault}`, { details: { field } });
}

// A secret is "af_", the key's id, "_" and 32 random bytes in base64url:
//
//   af_key_<32 hexadecimal digits>_<43 characters>
//
// Every part has a fixed length, so the underscores that base64url may contain make nothing ambiguous. The database has the
// SHA-256 of the whole text; 256 random bits need no slow hash.

const SECRET = /^af_(key_[0-9a-f]{32})_[A-Za-z0-9_-]{43}$/;
const KEY_ID = /^key_[0-9a-f]{32}$/;

/** The hash that no secret has, for keys that do not exist. */
const NO_HASH = "0".repeat(64);

function newSecret(): { readonly id: string; readonly secret: string } {
  const id = `key_${randomBytes(16).toString("hex")}`;
  return { id, secret: `af_${id}_${randomBytes(32).toString("base64url")}` };
}

/** Undefined: this is no secret of ours, whatever the database says. */
function keyIdOf(secret: string): string | undefined {
  return SECRET.exec(secret)?.[1];
}

function isKeyId(id: string): boolean {
  return KEY_ID.test(id);
}

function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Takes the same time whether the key is unknown or the secret wrong, and wherever they differ. */
function secretMatches(secret: string, storedHash: string | undefined): boolean {
  const given = Buffer.from(hashSecret(secret), "hex");
  const stored = Buffer.from(storedHash ?? NO_HASH, "hex");
  return stored.length === given.length && timingSafeEqual(given, stored) && storedHash !== undefined;
}
