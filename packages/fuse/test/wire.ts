import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { IN_HEADER_SIZE, KERNEL_MINOR, Opcode, OUT_HEADER_SIZE } from "../src/abi.ts";
import {
  type ConnectionInfo,
  check,
  type FileSystem,
  FuseSession,
  MessageBuffers,
  syscalls as sys,
} from "../src/index.ts";

export interface MessageFields {
  readonly opcode: number;
  readonly node?: number | bigint;
  readonly unique?: bigint;
  readonly uid?: number;
  readonly gid?: number;
  readonly pid?: number;
  readonly body?: Buffer;
  /** What the header says of extensions behind the body, in units of eight bytes; they are not added. */
  readonly extensionUnits?: number;
  /** What the header says of its own length; default the truth. */
  readonly declaredLength?: number;
}

/** One request as the kernel would write it, or not quite. */
export function message(fields: MessageFields): Buffer {
  const body = fields.body ?? Buffer.alloc(0);
  const header = Buffer.alloc(IN_HEADER_SIZE);
  header.writeUInt32LE(fields.declaredLength ?? IN_HEADER_SIZE + body.length, 0);
  header.writeUInt32LE(fields.opcode, 4);
  header.writeBigUInt64LE(fields.unique ?? 2n, 8);
  header.writeBigUInt64LE(BigInt(fields.node ?? 1), 16);
  header.writeUInt32LE(fields.uid ?? 1000, 24);
  header.writeUInt32LE(fields.gid ?? 100, 28);
  header.writeUInt32LE(fields.pid ?? 4711, 32);
  header.writeUInt16LE(fields.extensionUnits ?? 0, 36);
  return Buffer.concat([header, body]);
}

export function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => {
    bytes.writeUInt32LE(value >>> 0, i * 4);
  });
  return bytes;
}

export function u64(...values: (number | bigint)[]): Buffer {
  const bytes = Buffer.alloc(values.length * 8);
  values.forEach((value, i) => {
    bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)), i * 8);
  });
  return bytes;
}

/** NUL-terminated byte strings. */
export function names(...values: string[]): Buffer {
  return Buffer.from(values.map((value) => `${value}\0`).join(""), "latin1");
}

export interface RawReply {
  readonly length: number;
  /** 0, or the positive errno. */
  readonly errno: number;
  readonly unique: bigint;
  readonly body: Buffer;
}

interface WireOptions {
  readonly passthrough?: boolean;
  readonly background?: (job: () => boolean) => void;
  /** Answer an INIT first; default true. */
  readonly initialise?: boolean;
}

/** A session whose other end is a file: what it writes can be read back, in one piece and without a kernel. */
export class Wire {
  readonly session: FuseSession;
  readonly log: string[] = [];
  readonly buffers = new MessageBuffers();
  connection: ConnectionInfo | undefined;
  readonly #fd: number;

  constructor(fileSystem: FileSystem, options: WireOptions = {}) {
    this.#fd = namelessFile();
    this.session = new FuseSession({
      fd: this.#fd,
      fileSystem,
      buffers: this.buffers,
      passthrough: options.passthrough ?? false,
      ...(options.background && { background: options.background }),
      log: (line) => this.log.push(line),
      onReady: (connection) => {
        this.connection = connection;
      },
    });
    if (options.initialise ?? true) this.send(initMessage({ minor: KERNEL_MINOR }));
  }

  /** Handles a message and returns what the session wrote meanwhile. */
  send(bytes: Buffer): RawReply[] {
    const { request } = this.buffers;
    bytes.copy(request.bytes);
    request.length = bytes.length;
    this.session.handle(request);
    return this.replies();
  }

  /** For a request that is to have exactly one answer. */
  ask(fields: MessageFields): RawReply {
    const [reply, ...more] = this.send(message(fields));
    if (reply === undefined || more.length > 0) throw new Error(`there were ${more.length} replies too many, or none`);
    return reply;
  }

  /** What was written since the last look. */
  replies(): RawReply[] {
    const length = check("lseek", sys.lseek(this.#fd, 0, sys.Seek.CUR));
    const bytes = Buffer.alloc(length);
    if (check("pread", sys.pread(this.#fd, bytes, length, 0)) !== length) throw new Error("the replies cannot be read");
    check("lseek", sys.lseek(this.#fd, 0, sys.Seek.SET));
    return parseReplies(bytes);
  }
}

function parseReplies(bytes: Buffer): RawReply[] {
  const replies: RawReply[] = [];
  let at = 0;
  while (at < bytes.length) {
    const length = bytes.length - at < OUT_HEADER_SIZE ? 0 : bytes.readUInt32LE(at);
    if (length < OUT_HEADER_SIZE || at + length > bytes.length) throw new Error(`malformed reply of ${length} bytes`);
    replies.push({
      length,
      errno: -bytes.readInt32LE(at + 4) || 0,
      unique: bytes.readBigUInt64LE(at + 8),
      body: bytes.subarray(at + OUT_HEADER_SIZE, at + length),
    });
    at += length;
  }
  return replies;
}

/** struct fuse_init_in as kernels since 5.17 send it: 64 bytes; older ones stop after 16. */
export function initMessage(init: {
  major?: number;
  minor: number;
  flags?: number;
  flags2?: number;
  size?: 16 | 64;
}): Buffer {
  const words = u32(init.major ?? 7, init.minor, 131072, init.flags ?? 0, init.flags2 ?? 0);
  const body = Buffer.concat([words, Buffer.alloc(44)]).subarray(0, init.size ?? 64);
  return message({ opcode: Opcode.Init, node: 0, unique: 1n, body });
}

function namelessFile(): number {
  const directory = mkdtempSync(join(tmpdir(), "fuse-wire-"));
  const fd = check("open", sys.open(join(directory, "replies"), sys.Open.RDWR | sys.Open.CREAT, 0o600));
  rmSync(directory, { recursive: true });
  onTestFinished(() => {
    sys.close(fd);
  });
  return fd;
}
