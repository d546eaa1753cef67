import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { mkdir, open, readFile } from "node:fs/promises";
import { dirname } from "node:path";

// A token opens one port of one sandbox, until a time, for as long as the key of whoever asked for it is valid:
//
//   afp.SANDBOX.PORT.EXPIRES.KEY.MAC
//
// EXPIRES is in milliseconds since 1970, KEY the id of the key, empty on a server without keys. MAC is the HMAC-SHA256 of all that comes
// before it, in base64url. Nothing is stored: what is not signed by this server does not exist.

const TOKEN = /^(afp\.(sb_[0-9a-f]{16,64})\.([1-9]\d{0,4})\.(\d{1,15})\.(key_[0-9a-f]{32})?)\.([A-Za-z0-9_-]{43})$/;
const SECRET_BYTES = 32;

/** What a token says. */
export interface PortGrant {
  readonly sandboxId: string;
  readonly port: number;
  readonly expiresAtMs: number;
  /** Undefined: it was made without a key. */
  readonly keyId: string | undefined;
}

export class PortTokens {
  readonly #secret: Uint8Array;
  readonly #clock: () => number;

  constructor(secret: Uint8Array = randomBytes(SECRET_BYTES), clock: () => number = Date.now) {
    this.#secret = secret;
    this.#clock = clock;
  }

  make({ sandboxId, port, expiresAtMs, keyId = "" }: PortGrant): string {
    const text = `afp.${sandboxId}.${port}.${expiresAtMs}.${keyId}`;
    return `${text}.${this.#sign(text).toString("base64url")}`;
  }

  /** Undefined for what this server did not make, and what has expired. */
  read(token: string): PortGrant | undefined {
    const [, text = "", sandboxId = "", port, expires, keyId, signature = ""] = TOKEN.exec(token) ?? [];
    const given = Buffer.from(signature, "base64url");
    const right = this.#sign(text);
    if (given.length !== right.length || !timingSafeEqual(given, right)) return undefined;
    const grant = { sandboxId, port: Number(port), expiresAtMs: Number(expires), keyId };
    return grant.expiresAtMs > this.#clock() ? grant : undefined;
  }

  #sign(text: string): Buffer {
    return createHmac("sha256", this.#secret).update(text).digest();
  }
}

/** What tokens are signed with, made at the first time: links go on working when the server is started again. */
export async function readTokenSecret(path: string): Promise<Uint8Array> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const isThere = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "EEXIST";
  try {
    await using file = await open(path, "wx", 0o600);
    await file.writeFile(randomBytes(SECRET_BYTES));
    await file.sync();
  } catch (error) {
    if (!isThere(error)) throw error;
  }
  const secret = await readFile(path);
  if (secret.length !== SECRET_BYTES) throw new Error(`${path} does not hold a secret of this server: remove it`);
  return secret;
}
