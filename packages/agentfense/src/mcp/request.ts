import { resolve } from "node:path";
import type { McpApproval } from "@agentfense/agent/mcp";
import { UsageError } from "../failure.ts";
import type { ValuesOf } from "../option.ts";
import { readSandboxRequest, type SandboxRequest } from "../run/sandbox-request.ts";
import type { MCP_OPTIONS } from "./options.ts";
import { type HttpPlace, readPlace } from "./place.ts";

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
