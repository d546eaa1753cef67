import { FIXED_SIZE, IN_HEADER_SIZE, Opcode, type OpcodeName, SetattrField } from "./abi.ts";
import type { AttributeChange } from "./attributes.ts";
import { Errno } from "./errno.ts";
import type { CopyRange, FileSystem, Result } from "./file-system.ts";
import type { Reply } from "./reply.ts";
import type { Request } from "./request.ts";

/** Requests that the session answers itself; all others are a row of the table below. */
type SessionOpcode = "Init" | "Destroy" | "Interrupt" | "Forget" | "BatchForget";

type Run = (fs: FileSystem, request: Request, reply: Reply) => Result;

interface Operation {
  readonly name: OpcodeName;
  readonly fixedSize: number;
  readonly run: Run;
}

const { EINVAL, ENOSYS, ENAMETOOLONG, OK } = Errno;

/** Longest name the kernel's own file systems take; FUSE itself lets 1024 bytes through. */
const NAME_MAX = 255;
/** What the kernel knows as PATH_MAX, the terminating NUL included: a link's target is one byte shorter. */
const PATH_MAX = 4096;

// One object for every SETATTR: a handler reads it before it returns.
const change: AttributeChange = {
  fields: 0,
  handle: 0,
  size: 0,
  atime: 0,
  atimeNs: 0,
  mtime: 0,
  mtimeNs: 0,
  mode: 0,
  uid: 0,
  gid: 0,
};

/** Runs `use` with the name at an offset of the body, if there is a proper one. */
function withName(request: Request, offset: number, use: (name: string) => Result): Result {
  const name = request.name(offset);
  if (name === undefined) return EINVAL;
  if (name.length > NAME_MAX) return ENAMETOOLONG;
  if (name.includes("/")) return EINVAL;
  return use(name);
}

function rename(fs: FileSystem, request: Request, namesAt: number, flags: number): Result {
  if (!fs.rename) return ENOSYS;
  const name = request.name(namesAt);
  const newName = name === undefined ? undefined : request.name(namesAt + name.length + 1);
  if (name === undefined || newName === undefined) return EINVAL;
  if (name.length > NAME_MAX || newName.length > NAME_MAX) return ENAMETOOLONG;
  if (name.includes("/") || newName.includes("/")) return EINVAL;
  return fs.rename(request.nodeId, name, request.u64(0), newName, flags, request);
}

function copyRange(request: Request): CopyRange {
  return {
    node: request.nodeId,
    handle: request.u64(0),
    offset: request.i64(8),
    targetNode: request.u64(16),
    targetHandle: request.u64(24),
    targetOffset: request.i64(32),
    length: request.u64(40),
  };
}

function body(request: Request, offset: number, length: number): Buffer | undefined {
  const start = IN_HEADER_SIZE + offset;
  return start + length <= request.bodyEnd ? request.bytes.subarray(start, start + length) : undefined;
}

const RUN: Record<Exclude<OpcodeName, SessionOpcode>, Run> = {
  Lookup: (fs, request, reply) => withName(request, 0, (name) => fs.lookup(request.nodeId, name, request, reply)),
  Getattr: (fs, request, reply) => fs.getattr(request.nodeId, request, reply),
  Setattr: (fs, request, reply) => {
    if (!fs.setattr) return ENOSYS;
    change.fields = request.u32(0);
    change.handle = (change.fields & SetattrField.FH) !== 0 ? request.u64(8) : 0;
    change.size = request.u64(16);
    change.atime = request.i64(32);
    change.mtime = request.i64(40);
    change.atimeNs = request.u32(56);
    change.mtimeNs = request.u32(60);
    change.mode = request.u32(68);
    change.uid = request.u32(76);
    change.gid = request.u32(80);
    return fs.setattr(request.nodeId, change, request, reply);
  },
  Readlink: (fs, request, reply) => fs.readlink?.(request.nodeId, request, reply) ?? ENOSYS,
  Symlink: (fs, request, reply) =>
    withName(request, 0, (name) => {
      const target = request.name(name.length + 1);
      if (target === undefined) return EINVAL;
      if (target.length >= PATH_MAX) return ENAMETOOLONG;
      return fs.symlink?.(request.nodeId, name, target, request, reply) ?? ENOSYS;
    }),
  Mknod: (fs, request, reply) =>
    withName(
      request,
      16,
      (name) => fs.mknod?.(request.nodeId, name, request.u32(0), request.u32(4), request, reply) ?? ENOSYS,
    ),
  Mkdir: (fs, request, reply) =>
    withName(request, 8, (name) => fs.mkdir?.(request.nodeId, name, request.u32(0), request, reply) ?? ENOSYS),
  Unlink: (fs, request) => withName(request, 0, (name) => fs.unlink?.(request.nodeId, name, request) ?? ENOSYS),
  Rmdir: (fs, request) => withName(request, 0, (name) => fs.rmdir?.(request.nodeId, name, request) ?? ENOSYS),
  Rename: (fs, request) => rename(fs, request, 8, 0),
  Rename2: (fs, request) => rename(fs, request, 16, request.u32(8)),
  Link: (fs, request, reply) =>
    withName(request, 8, (name) => fs.link?.(request.u64(0), request.nodeId, name, request, reply) ?? ENOSYS),
  Open: (fs, request, reply) => fs.open?.(request.nodeId, request.u32(0), request, reply) ?? ENOSYS,
  Create: (fs, request, reply) =>
    withName(
      request,
      16,
      (name) => fs.create?.(request.nodeId, name, request.u32(0), request.u32(4), request, reply) ?? ENOSYS,
    ),
  Tmpfile: (fs, request, reply) =>
    fs.tmpfile?.(request.nodeId, request.u32(0), request.u32(4), request, reply) ?? ENOSYS,
  Read: (fs, request, reply) => {
    if (!fs.read) return ENOSYS;
    const size = Math.min(request.u32(16), reply.dataCapacity);
    return fs.read(request.nodeId, request.u64(0), request.u64(8), size, reply);
  },
  Write: (fs, request, reply) => {
    if (!fs.write) return ENOSYS;
    const data = body(request, 40, request.u32(16));
    if (data === undefined) return EINVAL;
    return fs.write(request.nodeId, request.u64(0), request.u64(8), data, request.u32(32), request, reply);
  },
  Statfs: (fs, request, reply) => fs.statfs?.(request.nodeId, reply) ?? ENOSYS,
  Release: (fs, request) => {
    fs.release?.(request.nodeId, request.u64(0), request.u32(8));
    return OK;
  },
  Fsync: (fs, request) => fs.fsync?.(request.nodeId, request.u64(0), (request.u32(8) & 1) !== 0) ?? ENOSYS,
  Flush: (fs, request) => fs.flush?.(request.nodeId, request.u64(0)) ?? ENOSYS,
  Setxattr: (fs, request) => {
    if (!fs.setxattr) return ENOSYS;
    const name = request.name(8);
    if (name === undefined) return EINVAL;
    const value = body(request, 8 + name.length + 1, request.u32(0));
    return value === undefined ? EINVAL : fs.setxattr(request.nodeId, name, value, request.u32(4), request);
  },
  Getxattr: (fs, request, reply) => {
    if (!fs.getxattr) return ENOSYS;
    const name = request.name(8);
    if (name === undefined) return EINVAL;
    return fs.getxattr(request.nodeId, name, Math.min(request.u32(0), reply.dataCapacity), request, reply);
  },
  Listxattr: (fs, request, reply) =>
    fs.listxattr?.(request.nodeId, Math.min(request.u32(0), reply.dataCapacity), request, reply) ?? ENOSYS,
  Removexattr: (fs, request) => {
    if (!fs.removexattr) return ENOSYS;
    const name = request.name(0);
    return name === undefined ? EINVAL : fs.removexattr(request.nodeId, name, request);
  },
  Opendir: (fs, request, reply) => fs.opendir?.(request.nodeId, request.u32(0), request, reply) ?? ENOSYS,
  Readdir: (fs, request, reply) => {
    if (!fs.readdir) return ENOSYS;
    const size = Math.min(request.u32(16), reply.dataCapacity);
    return fs.readdir(request.nodeId, request.u64(0), request.u64(8), size, request, reply);
  },
  Readdirplus: (fs, request, reply) => {
    if (!fs.readdirplus) return ENOSYS;
    const size = Math.min(request.u32(16), reply.dataCapacity);
    return fs.readdirplus(request.nodeId, request.u64(0), request.u64(8), size, request, reply);
  },
  Releasedir: (fs, request) => {
    fs.releasedir?.(request.nodeId, request.u64(0));
    return OK;
  },
  Fsyncdir: (fs, request) => fs.fsyncdir?.(request.nodeId, request.u64(0), (request.u32(8) & 1) !== 0) ?? ENOSYS,
  Access: (fs, request) => fs.access?.(request.nodeId, request.u32(0), request) ?? ENOSYS,
  // No file here has device controls; the kernel turns this into ENOTTY for the caller.
  Ioctl: () => ENOSYS,
  Poll: () => ENOSYS,
  Fallocate: (fs, request) =>
    fs.fallocate?.(request.nodeId, request.u64(0), request.u64(8), request.u64(16), request.u32(24), request) ?? ENOSYS,
  Lseek: (fs, request, reply) =>
    fs.lseek?.(request.nodeId, request.u64(0), request.i64(8), request.u32(16), reply) ?? ENOSYS,
  CopyFileRange: (fs, request, reply) => {
    if (!fs.copyFileRange) return ENOSYS;
    const result = fs.copyFileRange(copyRange(request), request);
    if ("errno" in result) return result.errno;
    reply.written(result.copied);
    return OK;
  },
  CopyFileRange64: (fs, request, reply) => {
    if (!fs.copyFileRange) return ENOSYS;
    const result = fs.copyFileRange(copyRange(request), request);
    if ("errno" in result) return result.errno;
    reply.number(result.copied);
    return OK;
  },
  // Birth time and the like: not worth a request per file. ENOSYS makes the kernel fall back to GETATTR for good.
  Statx: () => ENOSYS,
};

/** Operations by opcode, with holes. */
export const OPERATIONS: readonly (Operation | undefined)[] = (() => {
  const table: (Operation | undefined)[] = [];
  for (const [name, run] of Object.entries(RUN) as [keyof typeof RUN, Run][]) {
    table[Opcode[name]] = { name, fixedSize: FIXED_SIZE[name], run };
  }
  return table;
})();
