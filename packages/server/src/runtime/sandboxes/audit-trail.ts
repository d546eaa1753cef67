import { HOME } from "../../isolation/backend/backend.ts";
import type { SandboxEvent } from "../../isolation/sandbox/api.ts";
import type { AuditLog } from "../audit/api.ts";
import { type Caller, SERVER } from "../caller.ts";
import { clipText } from "../clip-text.ts";
import type { EventLevel } from "../store/store.ts";
import type { RegisteredSandbox } from "./registered-sandbox.ts";

/** The longest part of a command that the audit log keeps. */
const COMMAND_BYTES = 4096;

export interface EventDetails {
  readonly level?: EventLevel;
  readonly sessionId?: string | undefined;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** Tells the audit log what happens to sandboxes and in them. */
export function auditTrailIn(audit: AuditLog) {
  function tell(type: string, { record }: RegisteredSandbox, { keyId }: Caller, testimony: EventDetails = {}): void {
    const { id: sandboxId, ownerId, codebaseId } = record;
    audit.record({ ...testimony, type, ownerId, sandboxId, codebaseId, keyId });
  }
  return {
    tell,
    /** What the isolation layer saw. Nobody called: the agent did it. */
    tellEvent(registered: RegisteredSandbox, event: SandboxEvent): void {
      const data = eventData(registered, event);
      const isUsual = event.kind === "connection_allowed" || event.kind === "secret_used";
      const level = isUsual ? "info" : "warn";
      if (data !== undefined) tell(event.kind, registered, SERVER, { level, data });
    },
  };
}

export type AuditTrail = ReturnType<typeof auditTrailIn>;

function eventData({ record }: RegisteredSandbox, event: SandboxEvent): Readonly<Record<string, unknown>> | undefined {
  switch (event.kind) {
    case "permission_denied": {
      const { operation, level: permission, rule, suppressed } = event;
      const pattern = record.rules[rule]?.pattern ?? "";
      return { path: inside(event.path), operation, permission, rule, pattern, suppressed };
    }
    case "quota_exceeded":
      return { path: inside(event.path), operation: event.operation, suppressed: event.suppressed };
    case "resource_limit_exceeded":
      return { limit: event.limit, detail: event.detail };
    case "connection_allowed":
    case "connection_denied":
    case "secret_used":
    case "secret_misplaced": {
      const { kind: _, ...data } = event;
      return data;
    }
    case "accessed":
      return undefined; // no sandbox of a server records it
    case "mount_lost":
      return undefined; // told as sandbox_failed, when it has
  }
}

/** The beginning of a command, as the audit log keeps it. */
export function clippedCommand(command: string | readonly string[]): string {
  return clipText(typeof command === "string" ? command : command.join(" "), COMMAND_BYTES);
}

/** As a process inside would name it: a path of the workspace, "/src/a.ts", or of the home, "~/.npm". */
export function inside(path: string): string {
  if (path.startsWith("~")) return `${HOME}${path.slice(1)}`;
  return path === "/" ? "/workspace" : `/workspace${path}`;
}
