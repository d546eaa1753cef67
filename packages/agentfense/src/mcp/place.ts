import { randomBytes } from "node:crypto";
import { UsageError } from "../failure.ts";

/** Where HTTP clients come to, and what they have to show. */
export interface HttpPlace {
  /** For the system: "127.0.0.1", "::1". */
  readonly host: string;
  readonly port: number;
  readonly key: { readonly value: string; readonly isRandom: boolean };
  /** What may stand in `Host`. */
  readonly names: readonly string[];
}

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
const KEY_BYTES = 24;

export function readPlace(
  address: string,
  given: { readonly key: string | undefined; readonly names: readonly string[] | undefined },
  environment: NodeJS.ProcessEnv,
): HttpPlace {
  const { host, port } = parseAddress(address);
  const named = given.key ?? (environment.AGENTFENSE_API_KEY || undefined);
  if (named !== undefined && !/^[\x21-\x7e]+$/.test(named)) {
    throw new UsageError("the key must be printable ASCII without spaces, and not empty");
  }
  return {
    host,
    port,
    key: { value: named ?? randomBytes(KEY_BYTES).toString("base64url"), isRandom: named === undefined },
    names: [...LOOPBACK, ...(given.names ?? []).map((name) => name.toLowerCase()), inUrl(host).toLowerCase()],
  };
}

/** "127.0.0.1:9010", "[::1]:9010", "localhost:0". */
function parseAddress(text: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\s]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port > 65_535) {
    throw new UsageError(`--http takes an address such as 127.0.0.1:9010, not ${JSON.stringify(text)}`);
  }
  return { host, port };
}

/** The host of an address as URLs and `Host` have it. */
export function inUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d+){3}$/.test(host);
}
