import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

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

export function newSecret(): { readonly id: string; readonly secret: string } {
  const id = `key_${randomBytes(16).toString("hex")}`;
  return { id, secret: `af_${id}_${randomBytes(32).toString("base64url")}` };
}

/** Undefined: this is no secret of ours, whatever the database says. */
export function keyIdOf(secret: string): string | undefined {
  return SECRET.exec(secret)?.[1];
}

export function isKeyId(id: string): boolean {
  return KEY_ID.test(id);
}

export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Takes the same time whether the key is unknown or the secret wrong, and wherever they differ. */
export function secretMatches(secret: string, storedHash: string | undefined): boolean {
  const given = Buffer.from(hashSecret(secret), "hex");
  const stored = Buffer.from(storedHash ?? NO_HASH, "hex");
  return stored.length === given.length && timingSafeEqual(given, stored) && storedHash !== undefined;
}
