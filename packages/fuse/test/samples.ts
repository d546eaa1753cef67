import { KERNEL_MINOR, type OpcodeName, SetattrField } from "../src/abi.ts";
import type { Call } from "./recorder.ts";
import { names, u32, u64 } from "./wire.ts";

/** The body of one proper request, and the call it is to become; undefined: the session sees to it alone. */
export interface Sample {
  readonly body: Buffer;
  readonly call: Call | undefined;
}

const caller = { uid: 1000, gid: 100, pid: 4711 };
const BIG = 2 ** 40 + 9;
const ODD = "na\x80\xffme";

/** Every opcode, with numbers beyond 32 bits, negative times and names that are not UTF-8; all on node 5. */
export const SAMPLES: Readonly<Record<OpcodeName, Sample>> = {
  Lookup: { body: names(ODD), call: ["lookup", 5, ODD, caller] },
  Forget: { body: u64(BIG), call: ["forget", 5, BIG] },
  Getattr: { body: join(u32(1, 0), u64(3)), call: ["getattr", 5, caller] },
  Setattr: {
    body: join(
      u32(SetattrField.MODE | SetattrField.SIZE | SetattrField.ATIME | SetattrField.MTIME | SetattrField.FH, 0),
      u64(BIG, 2 ** 45, 0, -2, -(2 ** 33), 0),
      u32(1, 999_999_999, 0, 0o100640, 0, 4_000_000_000, 7, 0),
    ),
    call: [
      "setattr",
      5,
      {
        fields: SetattrField.MODE | SetattrField.SIZE | SetattrField.ATIME | SetattrField.MTIME | SetattrField.FH,
        handle: BIG,
        size: 2 ** 45,
        atime: -2,
        atimeNs: 1,
        mtime: -(2 ** 33),
        mtimeNs: 999_999_999,
        mode: 0o100640,
        uid: 4_000_000_000,
        gid: 7,
      },
      caller,
    ],
  },
  Readlink: { body: join(), call: ["readlink", 5, caller] },
  Symlink: { body: names(ODD, "../to/\xfe"), call: ["symlink", 5, ODD, "../to/\xfe", caller] },
  Mknod: {
    body: join(u32(0o010644, 259, 0o22, 0), names(ODD)),
    call: ["mknod", 5, ODD, 0o010644, 259, caller],
  },
  Mkdir: { body: join(u32(0o755, 0o22), names(ODD)), call: ["mkdir", 5, ODD, 0o755, caller] },
  Unlink: { body: names(ODD), call: ["unlink", 5, ODD, caller] },
  Rmdir: { body: names(ODD), call: ["rmdir", 5, ODD, caller] },
  Rename: { body: join(u64(BIG), names(ODD, "to")), call: ["rename", 5, ODD, BIG, "to", 0, caller] },
  Link: { body: join(u64(BIG), names(ODD)), call: ["link", BIG, 5, ODD, caller] },
  Open: { body: u32(0o102, 1), call: ["open", 5, 0o102, caller] },
  Read: { body: join(u64(BIG, 2 ** 43), u32(4096, 0), u64(0), u32(0, 0)), call: ["read", 5, BIG, 2 ** 43, 4096] },
  Write: {
    body: join(u64(BIG, 2 ** 43), u32(5, 0), u64(0), u32(0o2001, 0), Buffer.from("a\0\xffbc", "latin1")),
    call: ["write", 5, BIG, 2 ** 43, "a\0\xffbc", 0o2001, caller],
  },
  Statfs: { body: join(), call: ["statfs", 5] },
  Release: { body: join(u64(BIG), u32(0o2001, 0), u64(0)), call: ["release", 5, BIG, 0o2001] },
  Fsync: { body: join(u64(BIG), u32(1, 0)), call: ["fsync", 5, BIG, true] },
  Setxattr: {
    body: join(u32(3, 2), names("user.\xfe"), Buffer.from("v\0w", "latin1")),
    call: ["setxattr", 5, "user.\xfe", "v\0w", 2, caller],
  },
  Getxattr: { body: join(u32(64, 0), names("user.\xfe")), call: ["getxattr", 5, "user.\xfe", 64, caller] },
  Listxattr: { body: u32(0, 0), call: ["listxattr", 5, 0, caller] },
  Removexattr: { body: names("user.\xfe"), call: ["removexattr", 5, "user.\xfe", caller] },
  Flush: { body: join(u64(BIG), u32(0, 0), u64(1)), call: ["flush", 5, BIG] },
  Init: { body: join(u32(7, KERNEL_MINOR, 131072, 0), Buffer.alloc(48)), call: undefined },
  Opendir: { body: u32(0o200000, 0), call: ["opendir", 5, 0o200000, caller] },
  Readdir: {
    body: join(u64(BIG, 2 ** 41), u32(4096, 0), u64(0), u32(0, 0)),
    call: ["readdir", 5, BIG, 2 ** 41, 4096, caller],
  },
  Releasedir: { body: join(u64(BIG), u32(0, 0), u64(0)), call: ["releasedir", 5, BIG] },
  Fsyncdir: { body: join(u64(BIG), u32(0, 0)), call: ["fsyncdir", 5, BIG, false] },
  Access: { body: u32(4, 0), call: ["access", 5, 4, caller] },
  Create: {
    body: join(u32(0o102, 0o640, 0o22, 0), names(ODD)),
    call: ["create", 5, ODD, 0o102, 0o640, caller],
  },
  Interrupt: { body: u64(BIG), call: undefined },
  Destroy: { body: join(), call: undefined },
  Ioctl: { body: join(u64(BIG), u32(0, 0x5401), u64(0), u32(0, 0)), call: undefined },
  Poll: { body: join(u64(BIG, 1), u32(0, 1)), call: undefined },
  BatchForget: { body: join(u32(1, 0), u64(BIG, 3)), call: ["forget", BIG, 3] },
  Fallocate: {
    body: join(u64(BIG, 2 ** 42, 2 ** 43), u32(3, 0)),
    call: ["fallocate", 5, BIG, 2 ** 42, 2 ** 43, 3, caller],
  },
  Readdirplus: {
    body: join(u64(BIG, 2 ** 41), u32(4096, 0), u64(0), u32(0, 0)),
    call: ["readdirplus", 5, BIG, 2 ** 41, 4096, caller],
  },
  Rename2: {
    body: join(u64(BIG), u32(2, 0), names(ODD, "to")),
    call: ["rename", 5, ODD, BIG, "to", 2, caller],
  },
  Lseek: { body: join(u64(BIG, -1), u32(3, 0)), call: ["lseek", 5, BIG, -1, 3] },
  CopyFileRange: {
    body: u64(1, 2 ** 42, BIG, 4, 5, 6, 0),
    call: [
      "copyFileRange",
      { node: 5, handle: 1, offset: 2 ** 42, targetNode: BIG, targetHandle: 4, targetOffset: 5, length: 6 },
      caller,
    ],
  },
  Tmpfile: {
    body: join(u32(0o20200002, 0o600, 0o22, 0), names("x")),
    call: ["tmpfile", 5, 0o20200002, 0o600, caller],
  },
  Statx: { body: join(u32(0, 0), u64(0), u32(0, 0xfff)), call: undefined },
  CopyFileRange64: {
    body: u64(1, 2, 3, 4, 5, 2 ** 44, 0),
    call: [
      "copyFileRange",
      { node: 5, handle: 1, offset: 2, targetNode: 3, targetHandle: 4, targetOffset: 5, length: 2 ** 44 },
      caller,
    ],
  },
};

function join(...parts: Buffer[]): Buffer {
  return Buffer.concat(parts);
}
