import { type AttributeChange, Attributes, type Caller, Errno, SetattrField, syscalls } from "@agentfense/fuse";
import { LEVEL } from "@agentfense/permission";
import { type Context, noteAccess, overQuota, refuse } from "./context.ts";
import { Access } from "./credentials.ts";
import type { Files } from "./files.ts";
import type { Node } from "./node.ts";
import type { Location } from "./tree.ts";

const { FileType, UTIME_NOW, UTIME_OMIT } = syscalls;

/** Changes of mode, owner, size and times. */
export class AttributeChanges {
  readonly #context: Context;
  readonly #files: Files;
  readonly #revocable: boolean;
  readonly #attributes = new Attributes();

  constructor(context: Context, files: Files, options: { revocable: boolean }) {
    this.#context = context;
    this.#files = files;
    this.#revocable = options.revocable;
  }

  /** An errno or PENDING; a change that fails half-way has done what came before. */
  change(node: Node, change: AttributeChange, caller: Caller): number {
    const { fields } = change;
    const resizes = (fields & SetattrField.SIZE) !== 0;
    // A handle opened for writing keeps the right to change the size, whatever the rules have become.
    const byHandle = resizes && (change.handle & 2) !== 0 && !this.#revocable;
    const onlySize = (fields & (SetattrField.MODE | SetattrField.UID | SetattrField.GID)) === 0;
    if (!(byHandle && onlySize)) {
      const scope = this.#context.tree.scopeOf(node);
      if (scope.level < LEVEL.write && !node.removed)
        return refuse(this.#context, node, undefined, "setattr", scope, caller);
    }
    const { writing } = this.#context;
    if (writing === undefined) return Errno.EROFS;
    const denied = this.#mayChange(node, change, caller, byHandle);
    if (denied !== 0) return denied;
    if (!node.removed) noteAccess(this.#context, node, undefined, LEVEL.write);
    if (node.isDirectory && node.removed) {
      // Somebody still has it open; what never was in the delta cannot change any more.
      if (!node.inDelta) return Errno.ENOENT;
    } else if (node.isDirectory) {
      const fd = writing.copyUp.directory(node);
      if (fd < 0) return -fd;
    } else {
      const empty = resizes && change.size === 0;
      const errno = writing.copyUp.file(node, { empty });
      if (errno === Errno.EDQUOT) return overQuota(this.#context, node, undefined, "setattr", caller);
      if (errno !== 0) return errno;
    }
    return this.#apply(node, change, caller);
  }

  #mayChange(node: Node, change: AttributeChange, caller: Caller, byHandle: boolean): number {
    const { credentials } = this.#context;
    if (credentials.bypasses(caller)) return 0;
    if (!byHandle && !credentials.canReach(caller, node)) return Errno.EACCES;
    const { fields } = change;
    const owns = credentials.owns(caller, node);
    if ((fields & SetattrField.MODE) !== 0 && !owns) return Errno.EPERM;
    if ((fields & SetattrField.UID) !== 0 && !(owns && change.uid === node.uid)) return Errno.EPERM;
    const ownGroup = change.gid === node.gid || credentials.inGroup(caller, change.gid);
    if ((fields & SetattrField.GID) !== 0 && !(owns && ownGroup)) return Errno.EPERM;
    const times = fields & (SetattrField.ATIME | SetattrField.MTIME);
    if (times !== 0 && !owns) {
      const now = fields & (SetattrField.ATIME_NOW | SetattrField.MTIME_NOW);
      const bothNow = now === (SetattrField.ATIME_NOW | SetattrField.MTIME_NOW);
      if (!bothNow) return Errno.EPERM;
      if (!credentials.may(caller, node, Access.WRITE)) return Errno.EACCES;
    }
    if ((fields & SetattrField.SIZE) !== 0 && !byHandle && !credentials.may(caller, node, Access.WRITE))
      return Errno.EACCES;
    return 0;
  }

  #apply(node: Node, change: AttributeChange, caller: Caller): number {
    const { fields } = change;
    if ((fields & SetattrField.SIZE) !== 0) {
      if (!node.isRegular) return Errno.EINVAL;
      const errno = this.#files.truncate(node, change.size, caller);
      this.#files.closeIdle(node);
      if (errno !== 0) return errno;
    }
    const at = this.#context.tree.locate(node);
    if (typeof at === "number") return -at;
    if ((fields & (SetattrField.UID | SetattrField.GID)) !== 0) {
      const code = this.#chown(at, node, change);
      if (code < 0) return -code;
    }
    if ((fields & SetattrField.MODE) !== 0) {
      if (node.type === FileType.SYMLINK) return Errno.EOPNOTSUPP;
      const mode = change.mode & 0o1777;
      const code = at.name === "" ? syscalls.chmodHeld(at.fd, mode) : syscalls.chmodat(at.fd, at.name, mode);
      if (code < 0) return -code;
    }
    if ((fields & (SetattrField.ATIME | SetattrField.MTIME)) === 0) return 0;
    const atimeNs = nanoseconds(fields, SetattrField.ATIME, SetattrField.ATIME_NOW, change.atimeNs);
    const mtimeNs = nanoseconds(fields, SetattrField.MTIME, SetattrField.MTIME_NOW, change.mtimeNs);
    return -syscalls.utimensat(at.fd, at.name, change.atime, atimeNs, change.mtime, mtimeNs);
  }

  // As far as the mount's owner may: an owner shown to the sandbox is a fiction that only it itself fits into.
  #chown(at: Location, node: Node, change: AttributeChange): number {
    const uid = (change.fields & SetattrField.UID) !== 0 ? change.uid : -1;
    const gid = (change.fields & SetattrField.GID) !== 0 ? change.gid : -1;
    if (this.#context.mapsOwner) {
      this.#context.presentation.show(node, this.#attributes);
      const same = (uid === -1 || uid === this.#attributes.uid) && (gid === -1 || gid === this.#attributes.gid);
      return same ? 0 : -Errno.EPERM;
    }
    return syscalls.fchownat(at.fd, at.name, uid, gid);
  }
}

function nanoseconds(fields: number, set: number, now: number, value: number): number {
  if ((fields & set) === 0) return UTIME_OMIT;
  return (fields & now) !== 0 ? UTIME_NOW : value;
}
