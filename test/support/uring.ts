import { Buffer } from "node:buffer";
import { AT, MAP, PROT } from "./constants.ts";
import { cString, errnoName, memory, pointersTo, type Result, syscall } from "./syscall.ts";

/** One request of io_uring, by its name in the manual. */
export type UringRequest =
  | { readonly op: "openat"; readonly path: string; readonly flags: number }
  | { readonly op: "statx"; readonly path: string }
  | { readonly op: "unlinkat"; readonly path: string }
  | { readonly op: "read"; readonly fd: number; readonly length: number };

export interface UringAnswer extends Result {
  readonly data?: Buffer;
}

const OPCODE = { openat: 18, statx: 21, read: 22, unlinkat: 36 } as const;
const ENTRIES = 8;
const SQE_SIZE = 64;
const CQE_SIZE = 16;

/** Makes a ring, submits the requests one by one, waits for each, takes the ring down. */
export function submit(requests: readonly UringRequest[]): Result & { answers: UringAnswer[] } {
  // struct io_uring_params: sq_entries, cq_entries, flags, ..., features at 20, sq_off at 40, cq_off at 80.
  const params = Buffer.alloc(120);
  const ring = syscall("io_uring_setup", ENTRIES, params);
  if (ring.ret < 0) return { ...ring, answers: [] };
  const ringSize = Math.max(params.readUInt32LE(64) + ENTRIES * 4, params.readUInt32LE(100) + 2 * ENTRIES * CQE_SIZE);
  // IORING_FEAT_SINGLE_MMAP (every kernel since 5.4): one mapping holds both queues.
  const shared = syscall("mmap", 0, ringSize, PROT.READ | PROT.WRITE, MAP.SHARED, ring.ret, 0);
  const entries = syscall("mmap", 0, ENTRIES * SQE_SIZE, PROT.READ | PROT.WRITE, MAP.SHARED, ring.ret, 0x10000000);
  if (shared.ret < 0 || entries.ret < 0) return { ...(shared.ret < 0 ? shared : entries), answers: [] };
  const queue = Buffer.from(memory(shared.ret, ringSize).buffer);
  const submissions = Buffer.from(memory(entries.ret, ENTRIES * SQE_SIZE).buffer);
  const answers = requests.map((request) => submitOne(ring.ret, params, queue, submissions, request));
  syscall("munmap", shared.ret, ringSize);
  syscall("munmap", entries.ret, ENTRIES * SQE_SIZE);
  syscall("close", ring.ret);
  return { ret: 0, errno: "OK", answers };
}

function submitOne(
  ring: number,
  params: Buffer,
  queue: Buffer,
  submissions: Buffer,
  request: UringRequest,
): UringAnswer {
  const sq = { tail: params.readUInt32LE(44), mask: params.readUInt32LE(48), array: params.readUInt32LE(64) };
  const cq = { head: params.readUInt32LE(80), mask: params.readUInt32LE(88), cqes: params.readUInt32LE(100) };
  const tail = queue.readUInt32LE(sq.tail);
  const slot = tail & queue.readUInt32LE(sq.mask);
  const used = fill(submissions.subarray(slot * SQE_SIZE, (slot + 1) * SQE_SIZE), request);
  queue.writeUInt32LE(slot, sq.array + slot * 4);
  queue.writeUInt32LE(tail + 1, sq.tail);
  const entered = syscall("io_uring_enter", ring, 1, 1, 1 /* IORING_ENTER_GETEVENTS */, 0, 0);
  if (entered.ret < 0) return entered;
  const head = queue.readUInt32LE(cq.head);
  const result = queue.readInt32LE(cq.cqes + (head & queue.readUInt32LE(cq.mask)) * CQE_SIZE + 8);
  queue.writeUInt32LE(head + 1, cq.head);
  if (result < 0) return { ret: -1, errno: errnoName(-result) };
  const answer = { ret: result, errno: "OK" };
  return request.op === "read" ? { ...answer, data: used.output.subarray(0, result) } : answer;
}

/** Fills one struct io_uring_sqe; the returned buffers must live until the completion. */
function fill(entry: Buffer, request: UringRequest): { path: Buffer; output: Buffer } {
  const path = "path" in request ? cString(request.path) : Buffer.alloc(1);
  const output = Buffer.alloc(request.op === "read" ? request.length : 256);
  entry.fill(0);
  entry[0] = OPCODE[request.op];
  entry.writeInt32LE(request.op === "read" ? request.fd : AT.FDCWD, 4);
  const [pathAddress = 0n] = pointersTo([path]);
  const [outputAddress = 0n] = pointersTo([output]);
  entry.writeBigUInt64LE(request.op === "read" ? outputAddress : pathAddress, 16);
  if (request.op === "openat") entry.writeUInt32LE(request.flags, 28);
  if (request.op === "read") entry.writeUInt32LE(request.length, 24);
  if (request.op === "statx") {
    entry.writeBigUInt64LE(outputAddress, 8);
    entry.writeUInt32LE(0x7ff, 24);
  }
  return { path, output };
}
