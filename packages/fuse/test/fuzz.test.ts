import { describe, expect, test } from "vitest";
import { MemoryFileSystem } from "../examples/memory/file-system.ts";
import { IN_HEADER_SIZE, Opcode, type OpcodeName } from "../src/abi.ts";
import type { FileSystem } from "../src/index.ts";
import { Chance, type Mutant, mutant } from "./mutations.ts";
import { recorder } from "./recorder.ts";
import { message, names, type RawReply, u32, u64, Wire } from "./wire.ts";

const REQUESTS = 12_000;
// FUZZ_SEED repeats a run.
const SEED = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** How long the body of a successful answer is; data has any length up to what was asked for. */
const BODY_LENGTH: Partial<Record<number, number>> = bodyLengths({
  128: ["Lookup", "Symlink", "Mknod", "Mkdir", "Link"],
  104: ["Getattr", "Setattr"],
  16: ["Open", "Opendir"],
  144: ["Create", "Tmpfile"],
  8: ["Write", "Lseek", "CopyFileRange", "CopyFileRange64"],
  80: ["Statfs"],
  0: [
    ...(["Unlink", "Rmdir", "Rename", "Rename2", "Release", "Releasedir", "Fsync", "Fsyncdir", "Flush"] as const),
    ...(["Access", "Fallocate", "Setxattr", "Removexattr"] as const),
  ],
});
const DATA: number[] = [Opcode.Read, Opcode.Readdir, Opcode.Readdirplus];
const UNANSWERED: number[] = [Opcode.Forget, Opcode.BatchForget, Opcode.Interrupt];

describe(`malformed requests, seed ${SEED}`, () => {
  test("each gets the one well-formed answer it is owed, and the mount lives on", () => {
    console.log(`fuzz seed ${SEED}`);
    const wire = new Wire(new MemoryFileSystem({ bytes: 1 << 20, inodes: 200 }));
    const chance = new Chance(SEED);
    let newestNode = 1;
    const succeeded = new Set<number>();
    for (let i = 0; i < REQUESTS; i++) {
      const request = mutant(chance, newestNode);
      const replies = wire.send(request.bytes);
      checkReplies(request, replies);
      for (const { body } of replies.filter(({ errno }) => errno === 0)) {
        const opcode = request.bytes.readUInt32LE(4);
        succeeded.add(opcode);
        if ((BODY_LENGTH[opcode] ?? 0) >= 128) newestNode = Math.max(newestNode, Number(body.readBigUInt64LE(0)));
      }
      if (i % 1000 === 999) expectToWork(wire, `after ${i}`);
    }
    expect(wire.log.filter((line) => !line.startsWith("dropped a message"))).toEqual([]);
    // Were nearly all refused, little would have been tried.
    expect(succeeded.size).toBeGreaterThan(20);
  });

  test("nothing behind the end of a message is ever looked at", () => {
    console.log(`fuzz seed ${SEED}`);
    // The same request with different bytes behind it must have the same effect.
    const [quiet, loud] = [recorder(), recorder()];
    const wires = [new Wire(quiet.fileSystem), new Wire(loud.fileSystem)] as const;
    const chance = new Chance(SEED);
    for (let i = 0; i < REQUESTS; i++) {
      const request = mutant(chance);
      const behind = request.bytes.length;
      wires[0].buffers.request.bytes.fill(0, behind, behind + 8192);
      wires[1].buffers.request.bytes.fill(chance.bytes(61), behind, behind + 8192);
      const replies = wires[0].send(request.bytes);
      expect(wires[1].send(request.bytes), request.what).toEqual(replies);
      expect(loud.calls, request.what).toEqual(quiet.calls);
      checkReplies(request, replies);
      quiet.calls.length = 0;
      loud.calls.length = 0;
    }
  });

  test("names that reach the file system are never empty, too long or cut by a NUL", () => {
    const { fileSystem, calls } = recorder();
    const wire = new Wire(fileSystem);
    const chance = new Chance(SEED + 1);
    for (let i = 0; i < REQUESTS / 4; i++) {
      const request = mutant(chance);
      wire.send(request.bytes);
      const named = calls.filter(([method]) =>
        ["lookup", "mkdir", "unlink", "rmdir", "create", "rename"].includes(method),
      );
      for (const [, , name] of named) expect(name, request.what).toMatch(/^[^\0]{1,255}$/);
      calls.length = 0;
    }
  });

  test("handlers that throw, whatever they are asked, leave one EIO each", () => {
    const { fileSystem } = recorder();
    const broken: FileSystem = new Proxy(fileSystem, {
      get: (target, method) =>
        method === "init"
          ? target.init
          : () => {
              throw new Error("handler broke");
            },
    });
    const wire = new Wire(broken);
    const chance = new Chance(SEED + 2);
    for (let i = 0; i < REQUESTS / 4; i++) {
      const request = mutant(chance);
      checkReplies(request, wire.send(request.bytes));
    }
    expect(wire.log.some((line) => line.includes("handler broke"))).toBe(true);
  });
});

function checkReplies({ bytes, what }: Mutant, replies: readonly RawReply[]): void {
  const isRequest = bytes.length >= IN_HEADER_SIZE && bytes.readUInt32LE(0) === bytes.length;
  const opcode = bytes.length >= 8 ? bytes.readUInt32LE(4) : 0;
  const owed = isRequest && !UNANSWERED.includes(opcode) ? 1 : 0;
  if (replies.length !== owed) expect.fail(`${replies.length} replies instead of ${owed} to ${what}`);
  for (const reply of replies) {
    if (reply.unique !== bytes.readBigUInt64LE(8)) expect.fail(`wrong unique id in the reply to ${what}`);
    if (reply.errno < 0 || reply.errno > 511) expect.fail(`errno ${reply.errno} in the reply to ${what}`);
    if (reply.errno !== 0 && reply.length !== 16) expect.fail(`an error with a body in the reply to ${what}`);
    if (reply.errno === 0) checkBody(opcode, bytes, reply, what);
  }
}

function checkBody(opcode: number, bytes: Buffer, reply: RawReply, what: string): void {
  const expected = BODY_LENGTH[opcode];
  if (expected !== undefined) expect(reply.body.length, what).toBe(expected);
  if (DATA.includes(opcode))
    expect(reply.body.length, what).toBeLessThanOrEqual(bytes.readUInt32LE(IN_HEADER_SIZE + 16));
}

/** A file is made, written, read and removed. */
function expectToWork(wire: Wire, name: string): void {
  const created = wire.ask({ opcode: Opcode.Create, body: Buffer.concat([u32(0o102, 0o644, 0, 0), names(name)]) });
  expect(created.errno, name).toBe(0);
  const node = created.body.readBigUInt64LE(0);
  const write = Buffer.concat([u64(0, 0), u32(5, 0), u64(0), u32(0, 0), Buffer.from("hello")]);
  expect(wire.ask({ opcode: Opcode.Write, node, body: write }).errno).toBe(0);
  const read = Buffer.concat([u64(0, 1), u32(100, 0), u64(0), u32(0, 0)]);
  expect(wire.ask({ opcode: Opcode.Read, node, body: read }).body.toString()).toBe("ello");
  expect(wire.ask({ opcode: Opcode.Unlink, body: names(name) }).errno).toBe(0);
  expect(wire.send(message({ opcode: Opcode.Forget, node, body: u64(1) }))).toEqual([]);
  expect(wire.ask({ opcode: Opcode.Getattr, node, body: Buffer.alloc(16) }).errno).not.toBe(0);
}

function bodyLengths(table: Readonly<Record<number, readonly OpcodeName[]>>): Partial<Record<number, number>> {
  const rows = Object.entries(table).flatMap(([length, opcodes]) =>
    opcodes.map((name) => [Opcode[name], Number(length)] as const),
  );
  return Object.fromEntries(rows);
}
