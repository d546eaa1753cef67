import { createCipheriv, createDecipheriv, createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";

/** What a token of a sandbox lets in to: this sandbox, as whoever has this key. */
export interface Access {
  readonly sandboxId: string;
  /** "": the server asks for none. */
  readonly key: string;
}

/**
 * | kind      | begins | lets in to                                       |
 * | --------- | ------ | ------------------------------------------------ |
 * | `inside`  | `afe_` | files and processes                              |
 * | `traffic` | `aft_` | ports, and what is served at one: no file by itself |
 */
export type TokenKind = "inside" | "traffic";

const PREFIXES = { inside: "afe_", traffic: "aft_" } as const satisfies Record<TokenKind, string>;
const TOKEN = /^af[et]_[A-Za-z0-9_-]{40,1024}$/;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** For signed URLs, which name no sandbox, so many are tried. */
const MOST_REMEMBERED = 1024;
/** URLs that were found to be signed, so that each is looked for once. */
const MOST_SIGNATURES = 1024;
/** Sandboxes whose ports everybody reaches. */
const MOST_PUBLIC = 10_000;

/**
 * Tokens for a single sandbox. Each is the key of who asked for it and the sandbox's id, sealed: nothing has to be kept, and a key that is
 * revoked takes its tokens along. The nonce is made from what is sealed, so that who asks again gets the same token.
 *
 *   afe_ base64url( nonce, AES-256-GCM( JSON [sandbox, key], with "afe_" ), tag )
 */
export class SandboxAccess {
  readonly #secret: Buffer;
  readonly #remembered = new Set<string>();
  /** By what was signed and the signature. */
  readonly #signatures = new Map<string, string>();
  readonly #public = new Map<string, string>();

  constructor(secret: Buffer = randomBytes(32)) {
    this.#secret = secret;
  }

  token({ sandboxId, key }: Access, kind: TokenKind = "inside"): string {
    const text = JSON.stringify([sandboxId, key]);
    const prefix = PREFIXES[kind];
    const nonce = createHmac("sha256", this.#secret).update(`${prefix}${text}`).digest().subarray(0, NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#secret, nonce).setAAD(Buffer.from(prefix));
    const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
    const token = `${prefix}${sealed.toString("base64url")}`;
    if (kind === "inside") keepNewest(this.#remembered, token, MOST_REMEMBERED);
    return token;
  }

  /** Undefined for what was not made here, or for something else. */
  read(token: string, kind: TokenKind = "inside"): Access | undefined {
    const prefix = PREFIXES[kind];
    if (!token.startsWith(prefix) || !TOKEN.test(token)) return undefined;
    const sealed = Buffer.from(token.slice(prefix.length), "base64url");
    if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv("aes-256-gcm", this.#secret, sealed.subarray(0, NONCE_BYTES));
    decipher.setAAD(Buffer.from(prefix)).setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      const text =
        decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
      const [sandboxId, key] = JSON.parse(text) as [string, string];
      if (kind === "inside") keepNewest(this.#remembered, token, MOST_REMEMBERED);
      return { sandboxId, key };
    } catch {
      return undefined;
    }
  }

  /** Whose token a URL was signed with: `v1_` and the SHA-256 of "path:operation:user:token", with the time it expires behind. */
  signerOf(query: URLSearchParams, operation: "read" | "write"): Access | undefined {
    const given = /^v1_([A-Za-z0-9+/]{43})$/.exec(query.get("signature") ?? "")?.[1];
    if (given === undefined) return undefined;
    const expiration = query.get("signature_expiration");
    if (expiration !== null && !(Number(expiration) * 1000 > Date.now())) return undefined;
    const before = `${query.get("path") ?? ""}:${operation}:${query.get("username") ?? ""}:`;
    const behind = expiration === null ? "" : `:${expiration}`;
    const asked = `${given}${before}${behind}`;
    const known = this.#signatures.get(asked);
    const token = known ?? this.#signing(Buffer.from(given, "base64"), before, behind);
    if (token === undefined) return undefined;
    if (known === undefined && asked.length < 1024) {
      this.#signatures.set(asked, token);
      dropOldest(this.#signatures, MOST_SIGNATURES);
    }
    return this.read(token);
  }

  /** Everybody may reach the ports of this sandbox, as whoever has this key; until the server ends, and not longer than the key is valid. */
  openPorts({ sandboxId, key }: Access): void {
    this.#public.set(sandboxId, key);
    dropOldest(this.#public, MOST_PUBLIC);
  }

  keyOfPublicPorts(sandboxId: string): string | undefined {
    return this.#public.get(sandboxId);
  }

  /** All of them, so that the time it takes tells nothing. */
  #signing(given: Buffer, before: string, behind: string): string | undefined {
    let found: string | undefined;
    for (const token of this.#remembered) {
      const digest = hash("sha256", `${before}${token}${behind}`, "buffer");
      if (timingSafeEqual(digest, given)) found = token;
    }
    return found;
  }
}

/** The newest are known longest. */
function keepNewest(tokens: Set<string>, token: string, most: number): void {
  tokens.delete(token);
  tokens.add(token);
  const [oldest] = tokens;
  if (tokens.size > most && oldest !== undefined) tokens.delete(oldest);
}

function dropOldest(map: Map<string, unknown>, most: number): void {
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}
