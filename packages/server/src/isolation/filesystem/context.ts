import { type Caller, Errno, type RequestControl } from "@agentfense/fuse";
import type { LevelValue, Scope } from "@agentfense/permission";
import type { CopyUp } from "./copy-up.ts";
import type { Credentials } from "./credentials.ts";
import type { Delta } from "./delta.ts";
import type { AccessRecord, EventGate } from "./denials.ts";
import type { Moves } from "./moves.ts";
import type { Node } from "./node.ts";
import type { Presentation } from "./presentation.ts";
import type { Quota } from "./quota.ts";
import type { Tree } from "./tree.ts";
import type { Walks } from "./walks.ts";

/** What makes writing possible; a workspace without a delta has none of it. */
export interface Writing {
  readonly delta: Delta;
  readonly copyUp: CopyUp;
  readonly quota: Quota | undefined;
}

/** What the operations of one workspace share. */
export interface Context {
  readonly tree: Tree;
  readonly walks: Walks;
  readonly moves: Moves;
  readonly presentation: Presentation;
  readonly credentials: Credentials;
  readonly events: EventGate;
  /** Present where it is recorded what is done. */
  readonly accesses: AccessRecord | undefined;
  readonly writing: Writing | undefined;
  /** Present all entries as one user's, and create none for others. */
  readonly mapsOwner: boolean;
  /** The server itself is root and can create files for others. */
  readonly privileged: boolean;
  /** The kernel is to forget a directory's listing before this request is answered. */
  readonly staleListing: (directory: number) => void;
  /** The kernel is to ask for the attributes of a node again. */
  readonly staleAttributes: (node: number) => void;
  /** Has another thread tell the kernel to drop the pages it caches of a file. */
  readonly stalePages: (node: number) => void;
  control: RequestControl | undefined;
}

/** Refuses with an event: the rules do not give what the operation needs. */
export function refuse(
  context: Context,
  node: Node,
  name: string | undefined,
  operation: string,
  scope: Scope,
  caller: Caller,
): number {
  context.events.denied(() => context.tree.pathOf(node, name), operation, scope, caller.pid);
  return Errno.EACCES;
}

/** Records, where that is wanted, that an operation took this level of a node, or of a name in it. */
export function noteAccess(context: Context, node: Node, name: string | undefined, level: LevelValue): void {
  context.accesses?.note(context.tree.pathOf(node, name), level);
}

/** 0 if a node's own level suffices, ENOENT if it is hidden, EACCES otherwise. */
export function requireLevel(
  context: Context,
  node: Node,
  level: LevelValue,
  operation: string,
  caller: Caller,
): number {
  const { tree } = context;
  const scope = tree.scopeOf(node);
  if (scope.level >= level) return 0;
  if (!tree.shows(node)) return Errno.ENOENT;
  return refuse(context, node, undefined, operation, scope, caller);
}

export function overQuota(
  context: Context,
  node: Node,
  name: string | undefined,
  operation: string,
  caller: Caller,
): number {
  context.events.overQuota(() => context.tree.pathOf(node, name), operation, caller.pid);
  return Errno.EDQUOT;
}
