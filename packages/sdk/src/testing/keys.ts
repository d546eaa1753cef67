import { randomBytes } from "node:crypto";
import { Fault } from "./faults.ts";

export interface KeyRecord {
  readonly id: string;
  readonly ownerId: string;
  readonly role: "admin" | "user" | "read-only";
  readonly name: string;
  readonly createdAtMs: number;
  revokedAtMs: number | undefined;
}

/** API keys as records: the mock asks nobody for one. */
export class KeyRing {
  readonly #keys = new Map<string, KeyRecord>();

  create(facts: Pick<KeyRecord, "ownerId" | "role" | "name">): { readonly key: KeyRecord; readonly secret: string } {
    const id = `key_${randomBytes(16).toString("hex")}`;
    const key: KeyRecord = { ...facts, id, createdAtMs: Date.now(), revokedAtMs: undefined };
    this.#keys.set(id, key);
    return { key, secret: `af_${id}_${randomBytes(32).toString("base64url")}` };
  }

  list(): KeyRecord[] {
    return [...this.#keys.values()];
  }

  revoke(id: string): void {
    const key = this.#keys.get(id);
    if (key === undefined) throw new Fault("KEY_NOT_FOUND", "there is no such API key");
    key.revokedAtMs ??= Date.now();
  }
}
