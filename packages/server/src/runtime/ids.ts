import { randomBytes } from "node:crypto";
import { invalid } from "./runtime-error.ts";

// Ids become names of directories: their shape is checked before any use. The earlier server's had 16 digits.
const SANDBOX_ID = /^sb_[0-9a-f]{16,64}$/;
const SESSION_ID = /^sess_[0-9a-f]{16,64}$/;

const SNAPSHOT_ID = /^snap_[0-9a-f]{32}$/;
const LAYER_NAME = /^layer_[0-9a-f]{32}$/;

export function newSnapshotId(): string {
  return `snap_${randomBytes(16).toString("hex")}`;
}

export function checkSnapshotId(id: string): string {
  if (id === "") throw invalid("snapshot_id is required");
  if (!SNAPSHOT_ID.test(id)) throw invalid("snapshot_id is not the id of a snapshot: snap_ and hexadecimal digits");
  return id;
}

export function newLayerName(): string {
  return `layer_${randomBytes(16).toString("hex")}`;
}

export function isLayerName(name: string): boolean {
  return LAYER_NAME.test(name);
}

export function newSandboxId(): string {
  return `sb_${randomBytes(16).toString("hex")}`;
}

export function isSandboxId(id: string): boolean {
  return SANDBOX_ID.test(id);
}

export function checkSandboxId(id: string): string {
  if (id === "") throw invalid("sandbox_id is required");
  if (!SANDBOX_ID.test(id)) throw invalid("sandbox_id is not the id of a sandbox: sb_ and hexadecimal digits");
  return id;
}

export function checkSessionId(id: string): string {
  if (id === "") throw invalid("session_id is required");
  if (!SESSION_ID.test(id)) throw invalid("session_id is not the id of a session: sess_ and hexadecimal digits");
  return id;
}
