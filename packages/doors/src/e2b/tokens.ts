import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** What a token of a sandbox lets in to: this sandbox, as whoever has this key. */
export interface Access {
  readonly sandboxId: string;
  /** "": the server asks for none. */
  readonly key: string;
}

const TOKEN = /^afe_[A-Za-z0-9_-]{40,1024}$/;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** For signed URLs, which name no sandbox, so many are tried. */
const MOST_REMEMBERED = 1024;

/**
 * Tokens for a single sandbox. Each is the key of who asked for it and the sandbox's id, sealed: nothing has to be kept, and a key that is
 * revoked takes its tokens along. The nonce is made from what is sealed, so that who asks again gets the same token.
 *
 *   afe_ base64url( nonce, AES-256-GCM( JSON [sandbox, key] ), tag )
 */
export class AccessTokens {
  readonly #secret: Buffer;
  readonly #remembered = new Set<string>();

  constructor(secret: Buffer = randomBytes(32)) {
    this.#secret = secret;
  }

  make({ sandboxId, key }: Access): string {
    const text = JSON.stringify([sandboxId, key]);
    const nonce = createHmac("sha256", this.#secret).update(text).digest().subarray(0, NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#secret, nonce);
    const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
    const token = `afe_${sealed.toString("base64url")}`;
    this.#remember(token);
    return token;
  }

  /** Undefined for what was not made here. */
  read(token: string): Access | undefined {
    if (!TOKEN.test(token)) return undefined;
    const sealed = Buffer.from(token.slice(4), "base64url");
    if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv("aes-256-gcm", this.#secret, sealed.subarray(0, NONCE_BYTES));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      const text =
        decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
      const [sandboxId, key] = JSON.parse(text) as [string, string];
      this.#remember(token);
      return { sandboxId, key };
    } catch {
      return undefined;
    }
  }

  /** Whose token a URL was signed with: `v1_` and the SHA-256 of "path:operation:user:token", with the time it expires behind. */
  signerOf(query: URLSearchParams, operation: "read" | "write"): Access | undefined {
    const given = query.get("signature");
    if (given === null) return undefined;
    const expiration = query.get("signature_expiration");
    if (expiration !== null && !(Number(expiration) * 1000 > Date.now())) return undefined;
    const before = `${query.get("path") ?? ""}:${operation}:${query.get("username") ?? ""}:`;
    const behind = expiration === null ? "" : `:${expiration}`;
    let found: string | undefined;
    // All of them, so that the time it takes tells nothing.
    for (const token of this.#remembered) {
      const digest = createHash("sha256").update(`${before}${token}${behind}`).digest("base64").replace(/=+$/, "");
      if (isSame(given, `v1_${digest}`)) found = token;
    }
    return found === undefined ? undefined : this.read(found);
  }

  /** The newest are known longest. */
  #remember(token: string): void {
    this.#remembered.delete(token);
    this.#remembered.add(token);
    const [oldest] = this.#remembered;
    if (this.#remembered.size > MOST_REMEMBERED && oldest !== undefined) this.#remembered.delete(oldest);
  }
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
