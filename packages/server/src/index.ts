export { type Change, listChanges } from "./isolation/filesystem/changes.ts";
export type { Owner } from "./isolation/filesystem/presentation.ts";
export type { QuotaLimits } from "./isolation/filesystem/quota.ts";
export {
  type LogLine,
  MountHost,
  type WorkspaceEvent,
  type WorkspaceMount,
  type WorkspaceSpec,
} from "./isolation/mount/host.ts";
export { cleanStaleMount } from "./isolation/mount/mount-table.ts";
