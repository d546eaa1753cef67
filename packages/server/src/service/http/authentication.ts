import type { IncomingHttpHeaders } from "node:http";
import type { Caller } from "../../runtime/caller.ts";
import type { Keys } from "../../runtime/keys/api.ts";
import { RuntimeError } from "../../runtime/runtime-error.ts";

/** Who calls, and the secret that says so, if one was asked for. */
export interface Credential {
  readonly caller: Caller;
  readonly secret: string | undefined;
}

export const EVERYBODY: Credential = { caller: { ownerId: undefined, role: "admin" }, secret: undefined };

/** Finds out who sends a request, by its headers. */
export class Authenticator {
  readonly #keys: Keys | undefined;

  /** Without keys everybody may do everything. */
  constructor(keys: Keys | undefined) {
    this.#keys = keys;
  }

  /** Throws UNAUTHENTICATED. */
  async identify(headers: HeaderSource): Promise<Credential> {
    if (this.#keys === undefined) return EVERYBODY;
    const secret = secretIn(headers);
    if (secret === undefined) {
      throw new RuntimeError("UNAUTHENTICATED", "an API key is required", {
        hint: "send it as Authorization: Bearer <key> or as x-api-key",
      });
    }
    return { caller: await this.#keys.authenticate(secret), secret };
  }

  /** The secret is still one of ours. A store that fails to answer is no revocation. */
  async isRevoked(secret: string): Promise<boolean> {
    try {
      await this.#keys?.authenticate(secret);
      return false;
    } catch (error) {
      return error instanceof RuntimeError && error.code === "UNAUTHENTICATED";
    }
  }

  /** A key is required and this request has a valid one. */
  async holdsKey(headers: HeaderSource): Promise<boolean> {
    if (this.#keys === undefined) return false;
    return await this.identify(headers).then(
      () => true,
      () => false,
    );
  }
}

export interface HeaderSource {
  get(name: string): string | null;
}

export function headerSource(headers: IncomingHttpHeaders): HeaderSource {
  const given = new Map(Object.entries(headers));
  return { get: (name) => [given.get(name)].flat()[0] ?? null };
}

const BEARER = /^Bearer +([^\s]+) *$/i;

/** Another scheme than ours says something else than who calls: clients of E2B name a user of the sandbox in it. */
export function isBearer(headers: HeaderSource): boolean {
  return BEARER.test(headers.get("authorization") ?? "");
}

function secretIn(headers: HeaderSource): string | undefined {
  const bearer = BEARER.exec(headers.get("authorization") ?? "")?.[1];
  const secret = bearer ?? headers.get("x-api-key")?.trim();
  return secret === undefined || secret === "" ? undefined : secret;
}
