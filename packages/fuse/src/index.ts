import * as processes from "./native/processes.ts";
import * as syscalls from "./native/syscalls.ts";

export { EPOCH_MINOR, OPCODE_LIMIT, OpenFlag, opcodeName, ROOT_ID, SetattrField } from "./abi.ts";
export { type AttributeChange, Attributes, type FileSystemStatistics } from "./attributes.ts";
export { check, Errno, errnoName, SystemError } from "./errno.ts";
export {
  type ConnectionInfo,
  type CopyRange,
  type CopyResult,
  type FileSystem,
  PENDING,
  type RequestControl,
  RequestSuspended,
  type Result,
  type SuspendedRequest,
} from "./file-system.ts";
export { FuseSession, MAX_WRITE, MessageBuffers, Turn } from "./fuse-session.ts";
export { HandleTable } from "./handle-table.ts";
export { type BackgroundJob, ring, ServeLoop } from "./loop.ts";
export { type FuseDevice, type MountOptions, mountFuse, unmountFuse, unmountNow } from "./mount.ts";
export { NodeTable } from "./node-table.ts";
export {
  ContentStore,
  incrementEpoch,
  invalidateAttributes,
  invalidateEntryMessage,
  invalidateInodeMessage,
  invalidateListing,
  Notifier,
} from "./notify.ts";
export type { Reply } from "./reply.ts";
export type { Caller } from "./request.ts";
export { type ServedMount, type ServeOptions, serveFuse } from "./serve.ts";
export { processes, syscalls };
