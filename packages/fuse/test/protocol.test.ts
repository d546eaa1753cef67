import { describe, expect, test } from "vitest";
import { FIXED_SIZE, InitFlag, InitFlag2, Opcode, type OpcodeName } from "../src/abi.ts";
import { type Attributes, Errno, invalidateEntryMessage, invalidateInodeMessage, MAX_WRITE } from "../src/index.ts";
import { ODD_ATTRIBUTES, recorder } from "./recorder.ts";
import { SAMPLES } from "./samples.ts";
import { initMessage, message, names, u32, u64, Wire } from "./wire.ts";

const OPCODES = Object.keys(Opcode) as OpcodeName[];

describe("INIT", () => {
  // What fuse_send_init() of each kernel offers, as far as it goes without DAX.
  const UP_TO_EXPLICIT_INVAL = 0x03ff_fffb;
  const WITH_EXTENSION = UP_TO_EXPLICIT_INVAL | (1 << 28) | (1 << 29) | (1 << 30);
  const kernels = [
    { kernel: "5.10", minor: 32, size: 16, flags: UP_TO_EXPLICIT_INVAL, flags2: 0 },
    { kernel: "6.1", minor: 37, size: 64, flags: WITH_EXTENSION, flags2: 0b1 },
    { kernel: "6.9", minor: 40, size: 64, flags: WITH_EXTENSION, flags2: 0b1111_1101 },
    { kernel: "6.18", minor: 45, size: 64, flags: WITH_EXTENSION, flags2: 0b111_1111_1101 },
  ] as const;

  const BASE =
    InitFlag.ASYNC_READ |
    InitFlag.ATOMIC_O_TRUNC |
    InitFlag.BIG_WRITES |
    InitFlag.DO_READDIRPLUS |
    InitFlag.PARALLEL_DIROPS |
    InitFlag.EXPLICIT_INVAL_DATA |
    InitFlag.MAX_PAGES |
    InitFlag.CACHE_SYMLINKS;
  const NEWER = BASE | InitFlag.HANDLE_KILLPRIV_V2 | InitFlag.INIT_EXT;
  const negotiated = {
    "5.10": { flags: BASE, flags2: 0, stackDepth: 0, passthrough: false },
    "6.1": { flags: NEWER, flags2: 0, stackDepth: 0, passthrough: false },
    "6.9": {
      flags: NEWER,
      flags2: InitFlag2.PASSTHROUGH | InitFlag2.NO_EXPORT_SUPPORT,
      stackDepth: 2,
      passthrough: true,
    },
    "6.18": {
      flags: NEWER,
      flags2: InitFlag2.PASSTHROUGH | InitFlag2.NO_EXPORT_SUPPORT,
      stackDepth: 2,
      passthrough: true,
    },
  };

  test.each(kernels)("with Linux $kernel (7.$minor) only what it offers is taken", (offer) => {
    const wire = new Wire(recorder().fileSystem, { initialise: false, passthrough: true });
    const expected = negotiated[offer.kernel];

    const [reply] = wire.send(initMessage(offer));
    expect(reply?.errno).toBe(0);
    expect(parseInit(reply!.body)).toEqual({
      major: 7,
      minor: 45,
      maxReadahead: MAX_WRITE,
      flags: expected.flags,
      maxBackground: 64,
      congestionThreshold: 48,
      maxWrite: MAX_WRITE,
      timeGranularity: 1,
      maxPages: MAX_WRITE / 4096,
      flags2: expected.flags2,
      maxStackDepth: expected.stackDepth,
    });
    expect(wire.connection).toMatchObject({ minor: offer.minor, passthrough: expected.passthrough });
  });

  test("passthrough that nobody asked for is not taken", () => {
    const wire = new Wire(recorder().fileSystem, { initialise: false });
    const [reply] = wire.send(initMessage(kernels[3]));
    expect(parseInit(reply!.body)).toMatchObject({ flags2: InitFlag2.NO_EXPORT_SUPPORT, maxStackDepth: 0 });
    expect(wire.connection?.passthrough).toBe(false);
  });

  test("a kernel with a newer minor version is spoken to in ours", () => {
    const wire = new Wire(recorder().fileSystem, { initialise: false });
    wire.send(initMessage({ minor: 99 }));
    expect(wire.connection?.minor).toBe(45);
  });

  test("a newer major version is told ours and asks again", () => {
    const wire = new Wire(recorder().fileSystem, { initialise: false });
    const [first] = wire.send(initMessage({ major: 8, minor: 3 }));
    expect({ errno: first?.errno, ...parseInit(first!.body) }).toMatchObject({ errno: 0, major: 7, minor: 45 });
    expect(wire.connection).toBeUndefined();
    const [second] = wire.send(initMessage({ minor: 45 }));
    expect(second?.errno).toBe(0);
    expect(wire.connection?.minor).toBe(45);
  });

  test.each([
    { major: 7, minor: 22 },
    { major: 6, minor: 45 },
  ])("$major.$minor is too old: refused with a word in the log", (version) => {
    const wire = new Wire(recorder().fileSystem, { initialise: false });
    expect(wire.send(initMessage(version))).toMatchObject([{ errno: Errno.EPROTO, length: 16 }]);
    expect(wire.log).toEqual([`the kernel speaks FUSE ${version.major}.${version.minor}; at least 7.23 is needed`]);
    expect(wire.connection).toBeUndefined();
  });

  test("READDIRPLUS is not asked for when the file system has none: the kernel would not fall back", () => {
    const { readdirplus: _missing, ...fileSystem } = recorder().fileSystem;
    const wire = new Wire(fileSystem, { initialise: false });
    const [reply] = wire.send(initMessage(kernels[3]));
    expect(parseInit(reply!.body).flags & InitFlag.DO_READDIRPLUS).toBe(0);
  });

  test("a file system whose init throws leaves the INIT answered and a line in the log", () => {
    const { fileSystem } = recorder();
    fileSystem.init = () => {
      throw new Error("init broke");
    };
    const wire = new Wire(fileSystem, { initialise: false });
    expect(wire.send(initMessage({ minor: 45 }))).toMatchObject([{ errno: Errno.EIO, length: 16 }]);
    expect(wire.log).toHaveLength(1);
  });

  test("a second INIT is refused, and what comes before the first gets EIO", () => {
    const { fileSystem, calls } = recorder();
    const wire = new Wire(fileSystem, { initialise: false });
    expect(wire.ask({ opcode: Opcode.Getattr, body: SAMPLES.Getattr.body }).errno).toBe(Errno.EIO);
    wire.send(initMessage({ minor: 45 }));
    expect(wire.send(initMessage({ minor: 45 }))).toMatchObject([{ errno: Errno.EINVAL }]);
    expect(calls).toEqual([]);
  });
});

describe("requests", () => {
  const direct = OPCODES.filter((name) => SAMPLES[name].call !== undefined);

  test.each(direct)("%s becomes the call it stands for", (name) => {
    const { fileSystem, calls } = recorder();
    const wire = new Wire(fileSystem);
    wire.send(message({ opcode: Opcode[name], node: 5, body: SAMPLES[name].body }));
    expect(calls).toEqual([SAMPLES[name].call]);
  });

  test.each(OPCODES.filter((name) => FIXED_SIZE[name] > 0))(
    "%s cut short of its fixed part is not acted on",
    (name) => {
      const { fileSystem, calls } = recorder();
      const wire = new Wire(fileSystem, { initialise: name !== "Init" });
      const body = SAMPLES[name].body.subarray(0, FIXED_SIZE[name] - 1);
      const replies = wire.send(message({ opcode: Opcode[name], node: 5, body }));
      const unanswered = ["Forget", "BatchForget", "Interrupt"].includes(name);
      expect(replies.map(({ errno }) => errno)).toEqual(unanswered ? [] : [Errno.EINVAL]);
      expect(calls).toEqual([]);
    },
  );

  test("a node id beyond 32 bits arrives whole", () => {
    const { fileSystem, calls } = recorder();
    new Wire(fileSystem).ask({ opcode: Opcode.Statfs, node: 2n ** 52n + 1n });
    expect(calls).toEqual([["statfs", 2 ** 52 + 1]]);
  });

  test("the unique id comes back bit for bit", () => {
    const wire = new Wire(recorder().fileSystem);
    expect(wire.ask({ opcode: Opcode.Statfs, unique: 0xfedc_ba98_7654_3210n }).unique).toBe(0xfedc_ba98_7654_3210n);
  });

  test("no more data is asked of the file system than a reply can hold", () => {
    const { fileSystem, calls } = recorder();
    const wire = new Wire(fileSystem);
    const read = Buffer.concat([u64(1, 0), u32(0xffff_ffff, 0), u64(0), u32(0, 0)]);
    for (const opcode of [Opcode.Read, Opcode.Readdir, Opcode.Readdirplus]) wire.ask({ opcode, body: read });
    const size = u32(0xffff_ffff, 0);
    wire.ask({ opcode: Opcode.Getxattr, body: Buffer.concat([size, names("user.a")]) });
    wire.ask({ opcode: Opcode.Listxattr, body: size });
    const most = wire.buffers.reply.dataCapacity;
    const caller = { uid: 1000, gid: 100, pid: 4711 };
    expect(calls).toEqual([
      ["read", 1, 1, 0, most],
      ["readdir", 1, 1, 0, most, caller],
      ["readdirplus", 1, 1, 0, most, caller],
      ["getxattr", 1, "user.a", most, caller],
      ["listxattr", 1, most, caller],
    ]);
  });

  test("extensions behind the body are not taken for part of it", () => {
    const { fileSystem, calls } = recorder();
    const wire = new Wire(fileSystem);
    const create = Buffer.concat([u32(0o102, 0o640, 0o22, 0), names("created")]);
    const extension = Buffer.concat([u32(16, 32), u64(12)]);
    wire.ask({ opcode: Opcode.Create, body: Buffer.concat([create, extension]), extensionUnits: 2 });
    expect(calls[0]?.slice(0, 3)).toEqual(["create", 1, "created"]);

    const write = Buffer.concat([u64(1, 0), u32(16, 0), u64(0), u32(0, 0)]);
    const reply = wire.ask({ opcode: Opcode.Write, body: Buffer.concat([write, extension]), extensionUnits: 2 });
    expect(reply.errno).toBe(Errno.EINVAL);
  });

  test.each(["Lookup", "Mkdir", "Unlink", "Symlink", "Create", "Rename", "Link"] as const)(
    "%s of a name longer than 255 bytes is ENAMETOOLONG, of 255 bytes is not",
    (name) => {
      const { fileSystem, calls } = recorder();
      const wire = new Wire(fileSystem);
      const withName = (length: number) =>
        Buffer.concat([Buffer.alloc(FIXED_SIZE[name]), names("n".repeat(length), "second")]);
      expect(wire.ask({ opcode: Opcode[name], body: withName(256) }).errno).toBe(Errno.ENAMETOOLONG);
      expect(calls).toEqual([]);
      expect(wire.ask({ opcode: Opcode[name], body: withName(255) }).errno).toBe(0);
      expect(calls).toHaveLength(1);
    },
  );

  test.each(["Lookup", "Rename"] as const)("%s of a name with a slash never reaches the file system", (name) => {
    const { fileSystem, calls } = recorder();
    const body = Buffer.concat([Buffer.alloc(FIXED_SIZE[name]), names("../a", "b")]);
    expect(new Wire(fileSystem).ask({ opcode: Opcode[name], body }).errno).toBe(Errno.EINVAL);
    expect(calls).toEqual([]);
  });

  test("a missing method answers ENOSYS, an unknown opcode too", () => {
    const { lookup, forget, getattr } = recorder().fileSystem;
    const wire = new Wire({ lookup, forget, getattr });
    const provided: OpcodeName[] = ["Lookup", "Forget", "Getattr", "BatchForget", "Interrupt", "Init", "Destroy"];
    const harmless: OpcodeName[] = ["Release", "Releasedir"];
    for (const name of OPCODES.filter((candidate) => !provided.includes(candidate))) {
      const reply = wire.ask({ opcode: Opcode[name], node: 5, body: SAMPLES[name].body });
      expect([name, reply.errno]).toEqual([name, harmless.includes(name) ? 0 : Errno.ENOSYS]);
    }
    for (const opcode of [0, 7, 19, 31, 50, 54, 4096, 0xffff_ffff]) {
      expect(wire.ask({ opcode }).errno).toBe(Errno.ENOSYS);
    }
  });

  test.each(direct)("%s: a handler that throws is EIO and a line in the log", (name) => {
    const { fileSystem } = recorder();
    for (const method of Object.keys(fileSystem)) {
      if (method === "init") continue;
      Object.assign(fileSystem, {
        [method]: () => {
          throw new Error("handler broke");
        },
      });
    }
    const wire = new Wire(fileSystem);
    const replies = wire.send(message({ opcode: Opcode[name], node: 5, body: SAMPLES[name].body }));
    const unanswered = name === "Forget" || name === "BatchForget";
    expect(replies.map(({ errno, length }) => [errno, length])).toEqual(unanswered ? [] : [[Errno.EIO, 16]]);
    expect(wire.log).toHaveLength(1);
    expect(wire.log[0]).toContain("handler broke");
  });
});

describe("replies", () => {
  const attributes = attributeBytes(ODD_ATTRIBUTES);
  const entry = Buffer.concat([u64(77, 0, 1, 2), u32(500_000_000, 250_000_000), attributes]);
  const plainEntry = (ino: number, offset: number, type: number, name: string, padding: number) =>
    Buffer.concat([u64(ino, offset), u32(name.length, type), Buffer.from(name, "latin1"), Buffer.alloc(padding)]);
  const at = 2 ** 41;

  const expected: Partial<Record<OpcodeName, Buffer>> = {
    Lookup: entry,
    Getattr: Buffer.concat([u64(2), u32(250_000_000, 0), attributes]),
    Setattr: Buffer.concat([u64(2), u32(250_000_000, 0), attributes]),
    Readlink: Buffer.from("to/\xff", "latin1"),
    Symlink: entry,
    Mknod: entry,
    Mkdir: entry,
    Link: entry,
    Open: Buffer.concat([u64(2 ** 40 + 1), u32(2, 0)]),
    Create: Buffer.concat([entry, u64(2 ** 40 + 2), u32(128, 41)]),
    Tmpfile: Buffer.concat([entry, u64(2 ** 40 + 3), u32(0, 0)]),
    Read: Buffer.from("data"),
    Write: u32(5, 0),
    Statfs: Buffer.concat([u64(2 ** 33, 5, 5, 7, 3), u32(4096, 255, 4096, 0), Buffer.alloc(24)]),
    Lseek: u64(2 ** 41 + 1),
    CopyFileRange: u32(2 ** 31, 0),
    CopyFileRange64: u64(2 ** 31),
    Opendir: Buffer.concat([u64(9), u32(8, 0)]),
    Readdir: Buffer.concat([plainEntry(2 ** 52 + 3, at + 1, 4, "a\xfe", 6), plainEntry(8, at + 2, 8, "eight888", 0)]),
    Readdirplus: Buffer.concat([
      entry,
      plainEntry(2 ** 52 + 3, at + 1, 8, "a\xfe", 6),
      Buffer.alloc(128),
      plainEntry(2 ** 52 + 3, at + 2, 4, "..", 6),
    ]),
    Getxattr: Buffer.from("value"),
    Listxattr: u32(7, 0),
  };
  const empty: OpcodeName[] = ["Unlink", "Rmdir", "Rename", "Rename2", "Release", "Releasedir", "Fsync", "Fsyncdir"];
  empty.push("Flush", "Access", "Fallocate", "Setxattr", "Removexattr");
  for (const name of empty) expected[name] = Buffer.alloc(0);

  test.each(Object.entries(expected) as [OpcodeName, Buffer][])("%s has the kernel's layout", (name, body) => {
    const wire = new Wire(recorder().fileSystem);
    // Leave traces in the send buffer that a careless encoder would let through.
    wire.buffers.reply.bytes.fill(0xee);
    const reply = wire.ask({ opcode: Opcode[name], node: 5, body: SAMPLES[name].body });
    expect(reply).toEqual({ length: 16 + body.length, errno: 0, unique: 2n, body });
  });

  test("an absent entry has node id 0 and the time it may be remembered", () => {
    const { fileSystem } = recorder();
    fileSystem.lookup = (_parent, _name, _caller, reply) => {
      reply.absent(1500);
      return Errno.OK;
    };
    const wire = new Wire(fileSystem);
    wire.buffers.reply.bytes.fill(0xee);
    const reply = wire.ask({ opcode: Opcode.Lookup, body: names("none") });
    expect(reply.body).toEqual(Buffer.concat([u64(0, 0, 1, 0), u32(500_000_000, 0), Buffer.alloc(88)]));
  });

  test("a directory entry that does not fit is left for the next request", () => {
    const wire = new Wire(recorder().fileSystem);
    const ask = (opcode: number, size: number) =>
      wire.ask({ opcode, body: Buffer.concat([u64(1, 0), u32(size, 0), u64(0), u32(0, 0)]) }).body.length;
    expect([31, 32, 63, 64].map((size) => ask(Opcode.Readdir, size))).toEqual([0, 32, 32, 64]);
    expect([159, 160, 319, 320].map((size) => ask(Opcode.Readdirplus, size))).toEqual([0, 160, 160, 320]);
  });

  // Plain FUSE mounts are not sent a DESTROY, but a file system on a block device is.
  test("DESTROY is answered with nothing but a header, whatever was answered before", () => {
    const wire = new Wire(recorder().fileSystem);
    wire.ask({ opcode: Opcode.Statfs });
    expect(wire.ask({ opcode: Opcode.Destroy })).toMatchObject({ length: 16, errno: 0 });
  });
});

describe("notifications", () => {
  test("INVAL_ENTRY names the parent and the entry in bytes", () => {
    const body = Buffer.concat([u64(2 ** 40), u32(3, 0), names("a\xffb")]);
    expect(invalidateEntryMessage(2 ** 40, "a\xffb")).toEqual(Buffer.concat([u32(16 + body.length, 3), u64(0), body]));
  });

  test("INVAL_INODE takes a negative offset for attributes only", () => {
    expect(invalidateInodeMessage(7, -1, 0)).toEqual(Buffer.concat([u32(40, 2), u64(0, 7, -1, 0)]));
  });
});

function attributeBytes(a: Attributes): Buffer {
  return Buffer.concat([
    u64(a.ino, a.size, a.blocks, a.atime, a.mtime, a.ctime),
    u32(a.atimeNs, a.mtimeNs, a.ctimeNs, a.mode, a.nlink, a.uid, a.gid, 0, a.blksize, 0),
  ]);
}

function parseInit(body: Buffer) {
  const word = (index: number) => body.readUInt32LE(index * 4);
  return {
    major: word(0),
    minor: word(1),
    maxReadahead: word(2),
    flags: word(3),
    maxBackground: word(4) & 0xffff,
    congestionThreshold: word(4) >>> 16,
    maxWrite: word(5),
    timeGranularity: word(6),
    maxPages: word(7) & 0xffff,
    flags2: word(8),
    maxStackDepth: word(9),
  };
}
