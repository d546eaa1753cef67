import type { AttributeChange } from "./attributes.ts";
import type { Reply } from "./reply.ts";
import type { Caller } from "./request.ts";

/** A handler's verdict: 0 with the reply filled in, a positive errno, or PENDING. */
export type Result = number;

/**
 * The request is not answered yet: the handler has taken it out with `RequestControl.suspend` and will have it run again.
 */
export const PENDING = -1;

/** Thrown by a handler, from however deep in it, that has suspended its request: the same as answering PENDING. */
export class RequestSuspended extends Error {}

/** What a request's bytes are needed for beyond the call: running the whole request again, later. */
export interface SuspendedRequest {
  /** Runs the request from the start; its answer goes to the kernel as if it had just arrived. */
  resume(): void;
  /** True once the client was interrupted: the next resume() answers EINTR without asking the file system. */
  readonly interrupted: boolean;
}

export interface RequestControl {
  /** Only while a request is handled. */
  suspend(): SuspendedRequest;
}

/** What INIT settled. */
export interface ConnectionInfo {
  readonly minor: number;
  readonly passthrough: boolean;
  readonly fd: number;
}

/**
 * The operations of a file system, one method per kind of request. A missing method answers ENOSYS, which the kernel
 * remembers for the life of the mount for many kinds (OPENDIR, FLUSH, GETXATTR …) and then saves the round trip.
 *
 * Nodes are the ids the file system hands out in entry replies (the root is 1). Every entry reply with a node id counts
 * one lookup; `forget` takes lookups back, and only at zero may the id go. Names and link targets are byte strings (one
 * character per byte). Handlers are synchronous; long work suspends the request.
 */
export interface FileSystem {
  init?(connection: ConnectionInfo, control: RequestControl): void;
  /** The mount is gone: no further call will come. */
  destroy?(): void;
  /** Where several file systems are one mount: who answers for this node. Nobody named: this one does. */
  ownerOf?(node: number): FileSystem | undefined;

  lookup(parent: number, name: string, caller: Caller, reply: Reply): Result;
  forget(node: number, count: number): void;
  getattr(node: number, caller: Caller, reply: Reply): Result;
  setattr?(node: number, change: AttributeChange, caller: Caller, reply: Reply): Result;
  readlink?(node: number, caller: Caller, reply: Reply): Result;
  symlink?(parent: number, name: string, target: string, caller: Caller, reply: Reply): Result;
  mknod?(parent: number, name: string, mode: number, rdev: number, caller: Caller, reply: Reply): Result;
  mkdir?(parent: number, name: string, mode: number, caller: Caller, reply: Reply): Result;
  unlink?(parent: number, name: string, caller: Caller): Result;
  rmdir?(parent: number, name: string, caller: Caller): Result;
  rename?(parent: number, name: string, newParent: number, newName: string, flags: number, caller: Caller): Result;
  link?(node: number, newParent: number, newName: string, caller: Caller, reply: Reply): Result;

  open?(node: number, flags: number, caller: Caller, reply: Reply): Result;
  create?(parent: number, name: string, flags: number, mode: number, caller: Caller, reply: Reply): Result;
  tmpfile?(parent: number, flags: number, mode: number, caller: Caller, reply: Reply): Result;
  read?(node: number, handle: number, offset: number, size: number, reply: Reply): Result;
  write?(
    node: number,
    handle: number,
    offset: number,
    data: Buffer,
    openFlags: number,
    caller: Caller,
    reply: Reply,
  ): Result;
  flush?(node: number, handle: number): Result;
  release?(node: number, handle: number, openFlags: number): void;
  fsync?(node: number, handle: number, dataOnly: boolean): Result;
  fallocate?(node: number, handle: number, offset: number, length: number, mode: number, caller: Caller): Result;
  lseek?(node: number, handle: number, offset: number, whence: number, reply: Reply): Result;
  copyFileRange?(range: CopyRange, caller: Caller): CopyResult;

  opendir?(node: number, flags: number, caller: Caller, reply: Reply): Result;
  readdir?(node: number, handle: number, offset: number, size: number, caller: Caller, reply: Reply): Result;
  readdirplus?(node: number, handle: number, offset: number, size: number, caller: Caller, reply: Reply): Result;
  releasedir?(node: number, handle: number): void;
  fsyncdir?(node: number, handle: number, dataOnly: boolean): Result;

  access?(node: number, mask: number, caller: Caller): Result;
  statfs?(node: number, reply: Reply): Result;
  setxattr?(node: number, name: string, value: Buffer, flags: number, caller: Caller): Result;
  getxattr?(node: number, name: string, size: number, caller: Caller, reply: Reply): Result;
  listxattr?(node: number, size: number, caller: Caller, reply: Reply): Result;
  removexattr?(node: number, name: string, caller: Caller): Result;
}

export interface CopyRange {
  readonly node: number;
  readonly handle: number;
  readonly offset: number;
  readonly targetNode: number;
  readonly targetHandle: number;
  readonly targetOffset: number;
  readonly length: number;
}

/** How many bytes were copied, or the errno. */
export type CopyResult = { readonly copied: number } | { readonly errno: number };
