import { Attributes, type Caller, Errno, type FileSystem, type Reply } from "../src/index.ts";

/** The method and what it was given, copied: callers by their ids, replies left out. */
export type Call = readonly [method: string, ...args: unknown[]];

/** Attributes with a different value in every field, some of them beyond 32 bits or before 1970. */
export const ODD_ATTRIBUTES: Attributes = Object.assign(new Attributes(), {
  ino: 2 ** 52 + 3,
  size: 2 ** 40 + 5,
  blocks: 2 ** 33 + 7,
  atime: -1,
  atimeNs: 999_999_999,
  mtime: -(2 ** 34) - 11,
  mtimeNs: 13,
  ctime: 2 ** 35 + 17,
  ctimeNs: 19,
  mode: 0o104755,
  nlink: 23,
  uid: 29,
  gid: 31,
  blksize: 37,
});

/** A file system that notes every call and answers each with the same well-formed reply. */
export function recorder(): { readonly fileSystem: Required<FileSystem>; readonly calls: Call[] } {
  const calls: Call[] = [];
  const note = (method: string, ...args: unknown[]) => {
    calls.push([method, ...args.map((arg) => (Buffer.isBuffer(arg) ? arg.toString("latin1") : arg))]);
    return Errno.OK;
  };
  const who = ({ uid, gid, pid }: Caller) => ({ uid, gid, pid });
  const enter = (reply: Reply) => reply.entry(77, ODD_ATTRIBUTES, 1500, 2250);

  const fileSystem: Required<FileSystem> = {
    ownerOf: () => undefined,
    init: () => {},
    destroy: () => {
      note("destroy");
    },
    lookup: (parent, name, caller, reply) => {
      enter(reply);
      return note("lookup", parent, name, who(caller));
    },
    forget: (node, count) => {
      note("forget", node, count);
    },
    getattr: (node, caller, reply) => {
      reply.attributes(ODD_ATTRIBUTES, 2250);
      return note("getattr", node, who(caller));
    },
    setattr: (node, change, caller, reply) => {
      reply.attributes(ODD_ATTRIBUTES, 2250);
      return note("setattr", node, { ...change }, who(caller));
    },
    readlink: (node, caller, reply) => {
      reply.text("to/\xff");
      return note("readlink", node, who(caller));
    },
    symlink: (parent, name, target, caller, reply) => {
      enter(reply);
      return note("symlink", parent, name, target, who(caller));
    },
    mknod: (parent, name, mode, rdev, caller, reply) => {
      enter(reply);
      return note("mknod", parent, name, mode, rdev, who(caller));
    },
    mkdir: (parent, name, mode, caller, reply) => {
      enter(reply);
      return note("mkdir", parent, name, mode, who(caller));
    },
    unlink: (parent, name, caller) => note("unlink", parent, name, who(caller)),
    rmdir: (parent, name, caller) => note("rmdir", parent, name, who(caller)),
    rename: (parent, name, newParent, newName, flags, caller) =>
      note("rename", parent, name, newParent, newName, flags, who(caller)),
    link: (node, newParent, newName, caller, reply) => {
      enter(reply);
      return note("link", node, newParent, newName, who(caller));
    },
    open: (node, flags, caller, reply) => {
      reply.opened(node, 2 ** 40 + 1, 2);
      return note("open", node, flags, who(caller));
    },
    create: (parent, name, flags, mode, caller, reply) => {
      enter(reply);
      reply.opened(77, 2 ** 40 + 2, 128, 41);
      return note("create", parent, name, flags, mode, who(caller));
    },
    tmpfile: (parent, flags, mode, caller, reply) => {
      enter(reply);
      reply.opened(77, 2 ** 40 + 3, 0);
      return note("tmpfile", parent, flags, mode, who(caller));
    },
    read: (node, handle, offset, size, reply) => {
      reply.setDataLength(reply.bytes.write("data".slice(0, size), reply.dataOffset, "latin1"));
      return note("read", node, handle, offset, size);
    },
    write: (node, handle, offset, data, openFlags, caller, reply) => {
      reply.written(data.length);
      return note("write", node, handle, offset, data, openFlags, who(caller));
    },
    flush: (node, handle) => note("flush", node, handle),
    release: (node, handle, openFlags) => {
      note("release", node, handle, openFlags);
    },
    fsync: (node, handle, dataOnly) => note("fsync", node, handle, dataOnly),
    fallocate: (node, handle, offset, length, mode, caller) =>
      note("fallocate", node, handle, offset, length, mode, who(caller)),
    lseek: (node, handle, offset, whence, reply) => {
      reply.number(2 ** 41 + 1);
      return note("lseek", node, handle, offset, whence);
    },
    copyFileRange: (range, caller) => {
      note("copyFileRange", range, who(caller));
      return { copied: 2 ** 31 };
    },
    opendir: (node, flags, caller, reply) => {
      reply.opened(node, 9, 8);
      return note("opendir", node, flags, who(caller));
    },
    readdir: (node, handle, offset, size, caller, reply) => {
      reply.directoryEntry(size, 2 ** 52 + 3, offset + 1, 4, "a\xfe");
      reply.directoryEntry(size, 8, offset + 2, 8, "eight888");
      return note("readdir", node, handle, offset, size, who(caller));
    },
    readdirplus: (node, handle, offset, size, caller, reply) => {
      reply.directoryEntryPlus(size, 77, ODD_ATTRIBUTES, 1500, 2250, offset + 1, 8, "a\xfe");
      reply.directoryEntryPlus(size, 0, ODD_ATTRIBUTES, 1500, 2250, offset + 2, 4, "..");
      return note("readdirplus", node, handle, offset, size, who(caller));
    },
    releasedir: (node, handle) => {
      note("releasedir", node, handle);
    },
    fsyncdir: (node, handle, dataOnly) => note("fsyncdir", node, handle, dataOnly),
    access: (node, mask, caller) => note("access", node, mask, who(caller)),
    statfs: (node, reply) => {
      reply.statistics({ blocks: 2 ** 33, blocksFree: 5, files: 7, filesFree: 3, blockSize: 4096, nameLength: 255 });
      return note("statfs", node);
    },
    setxattr: (node, name, value, flags, caller) => note("setxattr", node, name, value, flags, who(caller)),
    getxattr: (node, name, size, caller, reply) => {
      if (size === 0) reply.xattrSize(11);
      else reply.text("value".slice(0, size));
      return note("getxattr", node, name, size, who(caller));
    },
    listxattr: (node, size, caller, reply) => {
      if (size === 0) reply.xattrSize(7);
      else reply.text("user.a\0".slice(0, size));
      return note("listxattr", node, size, who(caller));
    },
    removexattr: (node, name, caller) => note("removexattr", node, name, who(caller)),
  };
  return { fileSystem, calls };
}
