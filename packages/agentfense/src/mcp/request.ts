import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import type { McpApproval } from "@agentfense/agent/mcp";
import { UsageError } from "../command-failure.ts";
import type { ValuesOf } from "../option.ts";
import { readSandboxRequest, type SandboxRequest } from "../run/sandbox-request.ts";
import type { MCP_OPTIONS } from "./options.ts";

export interface McpRequest {
  readonly sandbox: SandboxRequest;
  /** Absent: standard input and output. */
  readonly http: HttpPlace | undefined;
  readonly approval: McpApproval;
  /** Absent: no browser. */
  readonly browser: { readonly executablePath: string | undefined } | undefined;
  readonly patch: string | undefined;
  /** Changes reach the directory with each call. */
  readonly writesThrough: boolean;
}

type McpValues = ValuesOf<readonly (typeof MCP_OPTIONS)[keyof typeof MCP_OPTIONS][number][]>;

/** What `mcp` was asked for. */
export async function readMcpRequest(
  values: McpValues,
  directory: string | undefined,
  environment: NodeJS.ProcessEnv,
): Promise<McpRequest> {
  const { request } = await readSandboxRequest(values, directory);
  const { http, key, browser, patch, "allow-host": names, "write-through": writesThrough = false } = values;
  if (http === undefined && (key !== undefined || names !== undefined)) {
    throw new UsageError(`--${key === undefined ? "allow-host" : "key"} goes with --http`);
  }
  if (writesThrough && request.apply !== "never") throw new UsageError("give --write-through or --apply, not both");
  return {
    sandbox: request,
    http: http === undefined ? undefined : readPlace(http, { key, names }, environment),
    approval: values.approve ?? "ask",
    browser: browser === undefined ? undefined : { executablePath: browser || undefined },
    patch: patch === undefined ? undefined : resolve(patch),
    writesThrough,
  };
}

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

function readPlace(
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
