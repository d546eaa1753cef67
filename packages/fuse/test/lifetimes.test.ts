import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { MemoryFileSystem } from "../examples/memory/file-system.ts";
import { Opcode, type OpcodeName } from "../src/abi.ts";
import {
  Errno,
  type FileSystem,
  FuseSession,
  HandleTable,
  MessageBuffers,
  mountFuse,
  NodeTable,
  PENDING,
  type RequestControl,
  ROOT_ID,
  type SuspendedRequest,
  syscalls as sys,
  Turn,
  unmountFuse,
} from "../src/index.ts";
import { type Call, recorder } from "./recorder.ts";
import { SAMPLES } from "./samples.ts";
import { message, names, u32, u64, Wire } from "./wire.ts";

describe("NodeTable", () => {
  test("a node lives until its last lookup is taken back", () => {
    const nodes = new NodeTable("root");
    const id = nodes.allocate("file");
    for (let i = 0; i < 3; i++) nodes.grant(id);
    expect(nodes.lookups(id)).toBe(3);
    expect(nodes.forget(id, 2)).toBeUndefined();
    expect(nodes.get(id)).toBe("file");
    expect(nodes.forget(id, 1)).toBe("file");
    expect(nodes.get(id)).toBeUndefined();
    expect(nodes.forget(id, 1)).toBeUndefined();
  });

  test("an id is never given out twice", () => {
    const nodes = new NodeTable("root");
    const first = nodes.allocate("first");
    nodes.forget(first, 1);
    expect(nodes.allocate("second")).toBeGreaterThan(first);
  });

  test("the root is there from the start and survives every FORGET", () => {
    const nodes = new NodeTable("root");
    nodes.grant(ROOT_ID);
    expect(nodes.forget(ROOT_ID, 1000)).toBeUndefined();
    expect([...nodes.values()]).toEqual(["root"]);
    expect(nodes.size).toBe(1);
  });

  test("more lookups taken back than were granted drop the node and nothing else", () => {
    const nodes = new NodeTable("root");
    const id = nodes.allocate("file");
    nodes.grant(id);
    expect(nodes.forget(id, 2 ** 60)).toBe("file");
    expect(nodes.forget(999, 1)).toBeUndefined();
    expect(() => nodes.grant(id)).toThrow(`node ${id} was granted`);
  });
});

describe("HandleTable", () => {
  test("a closed handle stands for nothing, even after others were opened", () => {
    const handles = new HandleTable<string>();
    const first = handles.open("first");
    expect(handles.close(first)).toBe("first");
    const second = handles.open("second");
    expect([first, second].map((handle) => handles.get(handle))).toEqual([undefined, "second"]);
    expect(handles.close(first)).toBeUndefined();
    expect([...handles.values()]).toEqual(["second"]);
    expect(handles.get(0)).toBeUndefined();
  });
});

describe("FORGET", () => {
  const getattr = { opcode: Opcode.Getattr, body: SAMPLES.Getattr.body };

  test("a node is known for as many lookups as were answered", () => {
    const wire = new Wire(new MemoryFileSystem());
    const node = mkdir(wire, "d");
    for (let i = 0; i < 2; i++) expect(wire.ask({ opcode: Opcode.Lookup, body: names("d") }).errno).toBe(0);

    wire.send(message({ opcode: Opcode.Forget, node, body: u64(2) }));
    expect(wire.ask({ ...getattr, node }).errno).toBe(0);
    wire.send(message({ opcode: Opcode.Forget, node, body: u64(1) }));
    expect(wire.ask({ ...getattr, node }).errno).toBe(Errno.ESTALE);
    expect(wire.ask({ opcode: Opcode.Lookup, body: names("d") }).body.readBigUInt64LE(0)).not.toBe(BigInt(node));
  });

  test("a BATCH_FORGET takes back what each item says, and no more items than there are", () => {
    const { fileSystem, calls } = recorder();
    const wire = new Wire(fileSystem);
    const items = Buffer.concat([u64(2, 1), u64(2 ** 40, 2 ** 33), u64(3, 5)]);
    const batch = (count: number) =>
      wire.send(message({ opcode: Opcode.BatchForget, node: 0, body: Buffer.concat([u32(count, 0), items]) }));
    const all: Call[] = [
      ["forget", 2, 1],
      ["forget", 2 ** 40, 2 ** 33],
      ["forget", 3, 5],
    ];

    expect(batch(2)).toEqual([]);
    expect(calls.splice(0)).toEqual(all.slice(0, 2));
    expect(batch(0xffff_ffff)).toEqual([]);
    expect(calls.splice(0)).toEqual(all);
  });

  test("a BATCH_FORGET of many is taken in turns", () => {
    const { fileSystem, calls } = recorder();
    const jobs: (() => boolean)[] = [];
    const wire = new Wire(fileSystem, { background: (job) => jobs.push(job) });
    const items = Array.from({ length: 1300 }, (_, i) => u64(i + 2, 1));
    const body = Buffer.concat([u32(items.length, 0), ...items]);
    wire.send(message({ opcode: Opcode.BatchForget, node: 0, body }));
    const forgotten = [calls.length];
    wire.buffers.request.bytes.fill(0);
    for (let done = false; !done; forgotten.push(calls.length)) done = jobs[0]!();
    expect(jobs).toHaveLength(1);
    expect(forgotten).toEqual([512, 1024, 1300]);
    expect(calls).toEqual(items.map((_, i) => ["forget", i + 2, 1]));
  });

  test("each entry of a READDIRPLUS counts one lookup, the dots count none", () => {
    const wire = new Wire(new MemoryFileSystem());
    const node = mkdir(wire, "d");
    const handle = wire.ask({ opcode: Opcode.Opendir, body: u32(0, 0) }).body.readBigUInt64LE(0);
    const readdirplus = Buffer.concat([u64(handle, 0), u32(4096, 0), u64(0), u32(0, 0)]);
    expect(wire.ask({ opcode: Opcode.Readdirplus, body: readdirplus }).body).toHaveLength(3 * 160);

    wire.send(message({ opcode: Opcode.Forget, node, body: u64(1) }));
    expect(wire.ask({ ...getattr, node }).errno).toBe(0);
    wire.send(message({ opcode: Opcode.Forget, node, body: u64(1) }));
    expect(wire.ask({ ...getattr, node }).errno).toBe(Errno.ESTALE);
  });
});

// The real device refuses a reply to a request it does not know with ENOENT, as it does when a client was killed.
describe.skipIf(!existsSync("/dev/fuse"))("a reply that reaches nobody (needs /dev/fuse)", () => {
  test.each<[OpcodeName, Call[]]>([
    ["Lookup", [["forget", 77, 1]]],
    ["Mkdir", [["forget", 77, 1]]],
    ["Readdirplus", [["forget", 77, 1]]],
    ["Open", [["release", 5, 2 ** 40 + 1, 0]]],
    [
      "Create",
      [
        ["release", 77, 2 ** 40 + 2, 0],
        ["forget", 77, 1],
      ],
    ],
    ["Getattr", []],
    ["Read", []],
  ])("%s gives back what it handed out", async (name, undone) => {
    const { session, buffers, calls, log } = await mounted();
    deliver(
      session,
      buffers,
      message({ opcode: Opcode[name], node: 5, unique: 0x7777_0000n, body: SAMPLES[name].body }),
    );
    expect(calls).toEqual([SAMPLES[name].call, ...undone]);
    expect(log).toEqual([]);
  });

  test("OPENDIR is given back by releasedir", async () => {
    const { session, buffers, calls } = await mounted();
    const opendir = message({ opcode: Opcode.Opendir, node: 5, unique: 0x7777_0000n, body: SAMPLES.Opendir.body });
    deliver(session, buffers, opendir);
    expect(calls).toEqual([SAMPLES.Opendir.call, ["releasedir", 5, 9]]);
  });

  test("a release that throws is a line in the log, and the lookup is given back all the same", async () => {
    const { session, buffers, calls, fileSystem, log } = await mounted();
    fileSystem.release = () => {
      throw new Error("release broke");
    };
    deliver(session, buffers, message({ opcode: Opcode.Create, unique: 0x7777_0000n, body: SAMPLES.Create.body }));
    expect(calls.at(-1)).toEqual(["forget", 77, 1]);
    expect(log).toHaveLength(1);
  });

  test("an error hands out nothing, so nothing is given back", async () => {
    const { session, buffers, calls, fileSystem } = await mounted();
    fileSystem.lookup = (_parent, _name, _caller, reply) => {
      reply.entry(77, Object.create(null), 0, 0);
      return Errno.EACCES;
    };
    deliver(session, buffers, message({ opcode: Opcode.Lookup, unique: 0x7777_0000n, body: names("a") }));
    expect(calls).toEqual([]);
  });
});

describe("a suspended request", () => {
  interface Suspending extends FileSystem {
    control: RequestControl | undefined;
    waiting: SuspendedRequest[];
    ready: boolean;
  }

  /** GETATTR and LOOKUP wait until `ready`; all else is answered at once. */
  function suspending(): Suspending {
    const { fileSystem } = recorder();
    const whenReady = <A extends unknown[]>(answer: (...args: A) => number) => {
      return (...args: A): number => {
        if (self.ready) return answer(...args);
        self.waiting.push(self.control!.suspend());
        return PENDING;
      };
    };
    const self: Suspending = {
      ...fileSystem,
      control: undefined,
      waiting: [],
      ready: false,
      init: (_connection, control) => {
        self.control = control;
      },
      getattr: whenReady(fileSystem.getattr),
      lookup: whenReady(fileSystem.lookup),
    };
    return self;
  }

  const getattr = message({ opcode: Opcode.Getattr, node: 5, unique: 0x1_0000_0002n, body: SAMPLES.Getattr.body });

  test("is answered when it is resumed, though the buffer was used by others meanwhile", () => {
    const fileSystem = suspending();
    const wire = new Wire(fileSystem);
    expect(wire.send(getattr)).toEqual([]);
    expect(wire.ask({ opcode: Opcode.Statfs, unique: 8n }).unique).toBe(8n);

    fileSystem.ready = true;
    fileSystem.waiting[0]?.resume();
    expect(wire.replies()).toMatchObject([{ unique: 0x1_0000_0002n, errno: 0, length: 120 }]);
  });

  test("may be suspended again by the run that resumed it", () => {
    const fileSystem = suspending();
    const wire = new Wire(fileSystem);
    wire.send(getattr);
    fileSystem.waiting.shift()?.resume();
    expect(wire.replies()).toEqual([]);
    fileSystem.ready = true;
    fileSystem.waiting.shift()?.resume();
    expect(wire.replies()).toMatchObject([{ unique: 0x1_0000_0002n, errno: 0 }]);
  });

  test("goes on after an INTERRUPT as long as no signal waits for its thread, as when that is frozen", () => {
    const fileSystem = suspending();
    const wire = new Wire(fileSystem);
    wire.send(message({ opcode: Opcode.Getattr, node: 5, unique: 6n, pid: process.pid, body: SAMPLES.Getattr.body }));
    wire.send(message({ opcode: Opcode.Interrupt, node: 0, body: u64(6) }));
    expect(fileSystem.waiting[0]?.interrupted).toBe(false);
    fileSystem.ready = true;
    fileSystem.waiting[0]?.resume();
    expect(wire.replies()).toMatchObject([{ unique: 6n, errno: 0, length: 120 }]);
  });

  test("is EINTR without asking the file system, once an INTERRUPT named it whose thread is gone", () => {
    const fileSystem = suspending();
    const wire = new Wire(fileSystem);
    wire.send(message({ opcode: Opcode.Getattr, node: 5, unique: 0x1_0000_0002n, pid: 0, body: SAMPLES.Getattr.body }));
    const interrupt = (unique: bigint) => wire.send(message({ opcode: Opcode.Interrupt, node: 0, body: u64(unique) }));

    expect(interrupt(2n)).toEqual([]);
    expect(fileSystem.waiting[0]?.interrupted).toBe(false);
    expect(interrupt(0x1_0000_0002n)).toEqual([]);
    expect(fileSystem.waiting[0]?.interrupted).toBe(true);
    fileSystem.waiting[0]?.resume();
    expect(wire.replies()).toMatchObject([{ unique: 0x1_0000_0002n, errno: Errno.EINTR, length: 16 }]);
    expect(fileSystem.waiting).toHaveLength(1);
  });

  test("an INTERRUPT for a request that was answered already changes nothing", () => {
    const wire = new Wire(recorder().fileSystem);
    expect(wire.ask({ opcode: Opcode.Statfs, unique: 4n }).errno).toBe(0);
    expect(wire.send(message({ opcode: Opcode.Interrupt, node: 0, unique: 5n, body: u64(4) }))).toEqual([]);
  });

  test.each([1, 2, 3, 5])("may be of any length: a LOOKUP of a name of %d bytes", (length) => {
    const fileSystem = suspending();
    const wire = new Wire(fileSystem);
    expect(wire.send(message({ opcode: Opcode.Lookup, body: names("n".repeat(length)) }))).toEqual([]);
    fileSystem.ready = true;
    fileSystem.waiting[0]?.resume();
    expect(wire.replies()).toMatchObject([{ errno: 0, length: 144 }]);
  });
});

function mkdir(wire: Wire, name: string): number {
  const reply = wire.ask({ opcode: Opcode.Mkdir, body: Buffer.concat([u32(0o755, 0), names(name)]) });
  expect(reply.errno).toBe(0);
  return Number(reply.body.readBigUInt64LE(0));
}

/** A recording file system behind a mount of its own that nobody uses, INIT answered. */
async function mounted() {
  const mountPoint = mkdtempSync(join(tmpdir(), "fuse-lifetimes-"));
  const device = await mountFuse({ mountPoint, name: "lifetimes" });
  onTestFinished(async () => {
    sys.close(device.fd);
    await unmountFuse(mountPoint, device);
    rmSync(mountPoint, { recursive: true });
  });
  const { fileSystem, calls } = recorder();
  const buffers = new MessageBuffers();
  const log: string[] = [];
  const session = new FuseSession({ fd: device.fd, fileSystem, buffers, log: (line) => log.push(line) });
  expect(session.turn()).toBe(Turn.ANSWERED);
  expect(session.connection).toBeDefined();
  return { session, buffers, calls, fileSystem, log };
}

function deliver(session: FuseSession, buffers: MessageBuffers, bytes: Buffer): void {
  bytes.copy(buffers.request.bytes);
  buffers.request.length = bytes.length;
  session.handle(buffers.request);
}
