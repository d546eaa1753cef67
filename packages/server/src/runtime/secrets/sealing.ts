import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

// A sealed value is a line of text:
//
//   1.KEY.DATA
//
// KEY is the id of the key that sealed it: the first 16 hexadecimal digits of the SHA-256 of "agentfense sealing key" and a zero byte,
// followed by the key. DATA is base64url of a nonce of 12 bytes, the value under AES-256-GCM, and its tag of 16 bytes. The
// associated data is a JSON array of what the value is for: sealed for one thing, it opens for no other.

const SEALED = /^1\.([0-9a-f]{16})\.([A-Za-z0-9_-]+)$/;
const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** What a value is for: owner, name, and all that says where it may be sent. */
export type Purpose = readonly (string | readonly string[])[];

interface SealingKey {
  readonly id: string;
  readonly key: Buffer;
}

/** The keys that values are sealed with: the first one seals, each opens what it has sealed. */
export class SealingKeys {
  readonly #keys: readonly [SealingKey, ...SealingKey[]];

  private constructor(keys: readonly [Buffer, ...Buffer[]]) {
    this.#keys = keys.map((key) => ({ id: idOf(key), key })) as [SealingKey, ...SealingKey[]];
  }

  /** For values that are not to outlive the process. */
  static ofProcess(): SealingKeys {
    return new SealingKeys([randomBytes(KEY_BYTES)]);
  }

  /** A file with one key a line: 32 bytes in base64. Lines that begin with # are for people. The error names no line's content. */
  static parse(text: string): SealingKeys {
    const lines = text.split(/\r?\n/).map((line, index) => ({ line: line.trim(), number: index + 1 }));
    const keys = lines.flatMap(({ line, number }) => {
      if (line === "" || line.startsWith("#")) return [];
      const key = /^[A-Za-z0-9+/]{43}=$/.test(line) ? Buffer.from(line, "base64") : Buffer.alloc(0);
      if (key.length !== KEY_BYTES) throw new Error(`line ${number} is no key: 32 random bytes in base64 are`);
      return [key];
    });
    const [first, ...others] = keys;
    if (first === undefined) throw new Error("it has no key");
    return new SealingKeys([first, ...others]);
  }

  /** The id of the key that seals. */
  get id(): string {
    return this.#keys[0].id;
  }

  has(keyId: string): boolean {
    return this.#keys.some(({ id }) => id === keyId);
  }

  seal(value: string, purpose: Purpose): string {
    const [{ id, key }] = this.#keys;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(
      Buffer.from(JSON.stringify(purpose)),
    );
    const data = Buffer.concat([nonce, cipher.update(value, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `1.${id}.${data.toString("base64url")}`;
  }

  /** Undefined: it was sealed with a key that is not here, for something else, or altered. */
  open(sealed: string, purpose: Purpose): string | undefined {
    const data = Buffer.from(SEALED.exec(sealed)?.[2] ?? "", "base64url");
    const key = this.#keys.find(({ id }) => id === keyIdOf(sealed))?.key;
    if (key === undefined || data.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv(CIPHER, key, data.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(JSON.stringify(purpose))).setAuthTag(data.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(data.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString();
    } catch {
      return undefined;
    }
  }
}

/** "": the text is not sealed. */
export function keyIdOf(sealed: string): string {
  return SEALED.exec(sealed)?.[1] ?? "";
}

function idOf(key: Buffer): string {
  return createHash("sha256").update("agentfense sealing key\0").update(key).digest("hex").slice(0, 16);
}
