import {
  Attributes,
  type Caller,
  type ConnectionInfo,
  Errno,
  type FileSystem,
  type Reply,
  type RequestControl,
  ROOT_ID,
} from "@agentfense/fuse";
import { Access } from "./credentials.ts";
import { placeOf } from "./tree.ts";
import type { Workspace } from "./workspace.ts";

const DIRECTORY_FOR_PASSING_THROUGH = 0o40711;
const REMEMBER_MS = 86_400_000;

/**
 * Several workspaces as directories of one mount, named by their numbers from 0 on. A box gets each of them by itself and never the
 * directory above: that is a way through, in which nothing is listed, made or changed.
 *
 * Whatever it does not do it refuses. "Not implemented" the kernel would remember, for all workspaces of the mount.
 */
export class Trees implements FileSystem {
  readonly #workspaces: readonly Workspace[];
  readonly #attributes = new Attributes();

  /** The place of each workspace (see TreeOptions) is its number and one: place 0 is this directory's. */
  constructor(workspaces: readonly Workspace[]) {
    this.#workspaces = workspaces;
    this.#attributes.ino = ROOT_ID;
    this.#attributes.mode = DIRECTORY_FOR_PASSING_THROUGH;
  }

  ownerOf(node: number): FileSystem | undefined {
    return this.#workspaces[placeOf(node) - 1];
  }

  init(connection: ConnectionInfo, control: RequestControl): void {
    for (const workspace of this.#workspaces) workspace.init(connection, control);
  }

  destroy(): void {
    for (const workspace of this.#workspaces) workspace.destroy();
  }

  lookup(_parent: number, name: string, _caller: Caller, reply: Reply): number {
    const workspace = /^\d+$/.test(name) ? this.#workspaces[Number(name)] : undefined;
    return workspace?.grantRoot(reply) ?? Errno.ENOENT;
  }

  forget(): void {}

  getattr(_node: number, _caller: Caller, reply: Reply): number {
    reply.attributes(this.#attributes, REMEMBER_MS);
    return 0;
  }

  statfs(node: number, reply: Reply): number {
    return this.#workspaces[0]!.statfs(node, reply);
  }

  access(_node: number, mask: number): number {
    return (mask & ~Access.EXECUTE) === 0 ? 0 : Errno.EACCES;
  }

  readonly open = refuse;
  readonly readdir = refuse;
  readonly readdirplus = refuse;
  readonly create = refuse;
  readonly tmpfile = refuse;
  readonly mkdir = refuse;
  readonly mknod = refuse;
  readonly symlink = refuse;
  readonly link = refuse;
  readonly unlink = refuse;
  readonly rmdir = refuse;
  readonly rename = refuse;
  readonly setattr = refuse;
  readonly getxattr = refuse;
  readonly listxattr = refuse;
  readonly setxattr = refuse;
  readonly removexattr = refuse;
}

function refuse(): number {
  return Errno.EACCES;
}
