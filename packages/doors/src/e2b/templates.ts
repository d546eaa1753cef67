import type { CreateSandboxRequest, NetworkList, NetworkMode, ResourceLimits, Rule } from "@agentfense/sdk";

/** What a sandbox is that a client asks for by the name of an E2B template. */
export interface E2bTemplate {
  /** What it begins with: the id of a codebase, or the name of one of the caller's; default: an empty directory. */
  readonly codebase?: string | undefined;
  readonly preset?: string | undefined;
  /** Default: everything may be written, unless there is a preset. */
  readonly permissions?: readonly Rule[] | undefined;
  /** Default: the server's. */
  readonly network?: NetworkMode | NetworkList | undefined;
  readonly runtime?: CreateSandboxRequest["runtime"];
  readonly image?: string | undefined;
  readonly resources?: ResourceLimits | undefined;
}

export type E2bTemplates = Readonly<Record<string, E2bTemplate>>;

/** The names that clients send when their program names none. */
export const DEFAULT_TEMPLATES: E2bTemplates = { base: {}, "code-interpreter-v1": {} };

export const EVERYTHING: readonly Rule[] = [{ pattern: "**", permission: "write" }];
