import { readFileSync } from "node:fs";
import {
  FIXED_SIZE,
  IN_HEADER_SIZE,
  InitFlag,
  InitFlag2,
  KERNEL_MAJOR,
  KERNEL_MINOR,
  OLDEST_MINOR,
  OPCODE_LIMIT,
  Opcode,
  opcodeName,
} from "./abi.ts";
import { Errno, errnoName } from "./errno.ts";
import type { ConnectionInfo, FileSystem, RequestControl, SuspendedRequest } from "./file-system.ts";
import { PENDING, RequestSuspended } from "./file-system.ts";
import * as sys from "./native/syscalls.ts";
import { OPERATIONS } from "./operations.ts";
import { Reply } from "./reply.ts";
import { Request } from "./request.ts";

export const MAX_WRITE = 1 << 20;
const MAX_PAGES = MAX_WRITE / 4096;
/** The kernel can forget 65,000 nodes at once: after so many of them others get their turn. */
const FORGOTTEN_A_TURN = 512;
/** The kernel refuses to hand out a request to a buffer smaller than the largest one it may send. */
const BUFFER_SIZE = MAX_WRITE + 8192;

/** Receive and send buffers; one pair serves all sessions of a thread, since requests are handled one at a time. */
export class MessageBuffers {
  readonly request = new Request(BUFFER_SIZE);
  readonly reply = new Reply(BUFFER_SIZE);
}

export interface SessionOptions {
  readonly fd: number;
  readonly fileSystem: FileSystem;
  readonly buffers: MessageBuffers;
  /** Ask for passthrough; what the kernel granted is in ConnectionInfo. */
  readonly passthrough?: boolean;
  /** Where long work goes on between requests; without one it is done at once. */
  readonly background?: (job: () => boolean) => void;
  readonly log?: (message: string) => void;
  /** Where requests are counted, by opcode; OPCODE_LIMIT long. */
  readonly requestCounts?: Float64Array;
  /** INIT has been answered: the mount works. */
  readonly onReady?: (connection: ConnectionInfo) => void;
}

/** What one turn found. */
export const Turn = {
  /** Nothing to read. */
  IDLE: 0,
  /** A request whose sender waits was answered: the next one will take a moment. */
  ANSWERED: 1,
  /** A request that nobody waits for was handled: more may be queued. */
  HANDLED: 2,
  /** The connection is gone. */
  CLOSED: 3,
} as const;

/**
 * Flags we ask for. Not the writeback cache (a SETATTR per changed file, late errors, no passthrough), not ACLs (they force
 * the kernel's permission checks), not remote locks (the kernel's own are right for a single mount).
 */
const WANTED =
  InitFlag.ASYNC_READ |
  InitFlag.ATOMIC_O_TRUNC |
  InitFlag.BIG_WRITES |
  InitFlag.DO_READDIRPLUS |
  InitFlag.PARALLEL_DIROPS |
  InitFlag.EXPLICIT_INVAL_DATA |
  InitFlag.MAX_PAGES |
  InitFlag.CACHE_SYMLINKS |
  InitFlag.HANDLE_KILLPRIV_V2 |
  InitFlag.INIT_EXT;

/** One FUSE connection: reads requests, has the file system answer them, writes the replies. */
export class FuseSession implements RequestControl {
  readonly fd: number;
  readonly #fs: FileSystem;
  readonly #request: Request;
  readonly #reply: Reply;
  readonly #options: SessionOptions;
  readonly #counts: Float64Array;
  #current: Request | undefined;
  #connection: ConnectionInfo | undefined;
  #closed = false;
  /** Suspended requests by the text of their unique id, for INTERRUPT. */
  readonly #suspended = new Map<string, { wasInterrupted: boolean }>();

  constructor(options: SessionOptions) {
    this.fd = options.fd;
    this.#fs = options.fileSystem;
    this.#request = options.buffers.request;
    this.#reply = options.buffers.reply;
    this.#options = options;
    this.#counts = options.requestCounts ?? new Float64Array(OPCODE_LIMIT);
  }

  get connection(): ConnectionInfo | undefined {
    return this.#connection;
  }

  /** Reads and handles one request, if there is one. */
  turn(): number {
    const request = this.#request;
    const length = sys.read(this.fd, request.bytes, BUFFER_SIZE);
    if (length < 0) {
      switch (-length) {
        case Errno.ENOENT: // the request was interrupted before we read it
        case Errno.EINTR:
          return Turn.HANDLED;
        case Errno.EBADF:
        case Errno.EINVAL:
          this.#log(`reading requests failed: ${errnoName(-length)}`);
          this.#close();
          return Turn.CLOSED;
        case Errno.ENODEV:
          this.#close();
          return Turn.CLOSED;
        default: // EAGAIN, or an errno that is not ours (see syscalls.ts): look again when there is something
          return Turn.IDLE;
      }
    }
    request.length = length;
    return this.handle(request);
  }

  /** Handles a request that stands in a buffer; public so that malformed ones can be tried without a kernel. */
  handle(request: Request): number {
    if (request.length < IN_HEADER_SIZE || request.declaredLength !== request.length) {
      this.#log(`dropped a message of ${request.length} bytes that is no request`);
      return Turn.HANDLED;
    }
    const { opcode } = request;
    if (opcode < OPCODE_LIMIT) this.#counts[opcode]! += 1;
    switch (opcode) {
      case Opcode.Forget:
        if (request.length >= IN_HEADER_SIZE + FIXED_SIZE.Forget) this.#forget(request.nodeId, request.u64(0));
        return Turn.HANDLED;
      case Opcode.BatchForget:
        this.#batchForget(request);
        return Turn.HANDLED;
      case Opcode.Interrupt:
        this.#interrupt(request);
        return Turn.HANDLED;
      case Opcode.Destroy:
        this.#reply.reset();
        this.#send(request, Errno.OK);
        return Turn.ANSWERED;
      case Opcode.Init:
        this.#init(request);
        return Turn.ANSWERED;
      case Opcode.Release:
      case Opcode.Releasedir:
        this.#run(request);
        return Turn.HANDLED;
      default:
        this.#run(request);
        return Turn.ANSWERED;
    }
  }

  /** Takes the request being handled out of the buffer, so that it can run again later. */
  suspend(): SuspendedRequest {
    const original = this.#current;
    if (original === undefined) throw new Error("no request is being handled");
    const kept = new Request((original.length + 8) & ~7);
    original.bytes.copy(kept.bytes, 0, 0, original.length);
    kept.length = original.length;
    const key = uniqueKey(original.uniqueLow, original.uniqueHigh);
    const state = { wasInterrupted: false };
    this.#suspended.set(key, state);
    // The kernel says so once: whoever was about to be frozen then may be killed later.
    const isInterrupted = (): boolean => state.wasInterrupted && hasSignalPending(kept.pid);
    return {
      get interrupted() {
        return isInterrupted();
      },
      resume: () => {
        if (!this.#suspended.delete(key) || this.#closed) return;
        if (isInterrupted()) {
          this.#reply.reset();
          this.#send(kept, Errno.EINTR);
        } else this.#run(kept);
      },
    };
  }

  #run(request: Request): void {
    const reply = this.#reply;
    reply.reset();
    this.#send(request, this.#answer(request, reply));
  }

  #answer(request: Request, reply: Reply): number {
    const operation = OPERATIONS[request.opcode];
    if (operation === undefined) return Errno.ENOSYS;
    if (this.#connection === undefined) return Errno.EIO;
    if (request.bodyEnd < IN_HEADER_SIZE + operation.fixedSize) return Errno.EINVAL;
    this.#current = request;
    try {
      return operation.run(this.#ownerOf(request.nodeId), request, reply);
    } catch (error) {
      if (error instanceof RequestSuspended) return PENDING;
      // One request fails; the mount lives on.
      this.#log(`${operation.name} failed: ${describe(error)}`);
      return Errno.EIO;
    } finally {
      this.#current = undefined;
    }
  }

  #send(request: Request, errno: number): void {
    if (errno === PENDING) return;
    const reply = this.#reply;
    const length = reply.seal(request.uniqueLow, request.uniqueHigh, errno);
    const written = sys.write(this.fd, reply.bytes, length);
    if (written >= 0) return;
    if (-written === Errno.ENOENT) this.#undo(request.opcode, errno);
    else if (-written !== Errno.ENODEV) {
      this.#log(`reply to ${opcodeName(request.opcode)} refused: ${errnoName(-written)}`);
      this.#undo(request.opcode, errno);
      if (-written === Errno.EINVAL) this.#sendBareError(request);
    }
  }

  // The kernel found the reply malformed and the client still waits.
  #sendBareError(request: Request): void {
    const length = this.#reply.seal(request.uniqueLow, request.uniqueHigh, Errno.EIO);
    sys.write(this.fd, this.#reply.bytes, length);
  }

  // The client was killed before it saw the reply: what the reply granted will never be given back by it.
  #undo(opcode: number, errno: number): void {
    if (errno !== Errno.OK) return;
    const { granted, openedHandle, openedNode } = this.#reply;
    if (openedNode !== 0) {
      this.#guarded("undoing an open", () => {
        const fs = this.#ownerOf(openedNode);
        if (opcode === Opcode.Opendir) fs.releasedir?.(openedNode, openedHandle);
        else fs.release?.(openedNode, openedHandle, 0);
      });
    }
    for (const node of granted) this.#forget(node, 1);
  }

  #forget(node: number, count: number): void {
    this.#guarded("FORGET", () => this.#ownerOf(node).forget(node, count));
  }

  #ownerOf(node: number): FileSystem {
    return this.#fs.ownerOf?.(node) ?? this.#fs;
  }

  // What the file system throws where no reply can carry it.
  #guarded(what: string, run: () => void): boolean {
    try {
      run();
      return true;
    } catch (error) {
      this.#log(`${what} failed: ${describe(error)}`);
      return false;
    }
  }

  #batchForget(request: Request): void {
    if (request.length < IN_HEADER_SIZE + FIXED_SIZE.BatchForget) return;
    const room = Math.floor((request.length - IN_HEADER_SIZE - FIXED_SIZE.BatchForget) / 16);
    const count = Math.min(request.u32(0), room);
    const { background } = this.#options;
    const atOnce = background === undefined ? count : Math.min(count, FORGOTTEN_A_TURN);
    const item = (i: number): [node: number, lookups: number] => {
      const at = FIXED_SIZE.BatchForget + i * 16;
      return [request.u64(at), request.u64(at + 8)];
    };
    for (let i = 0; i < atOnce; i++) this.#forget(...item(i));
    if (atOnce === count) return;
    // The buffer is needed for the next request. Until they are forgotten the nodes keep their ids, so later is as good.
    const rest = Array.from({ length: count - atOnce }, (_, i) => item(atOnce + i)).reverse();
    background?.(() => {
      const left = this.#closed ? 0 : Math.max(0, rest.length - FORGOTTEN_A_TURN);
      while (!this.#closed && rest.length > left) this.#forget(...rest.pop()!);
      return left === 0;
    });
  }

  // Only a suspended request can still be interrupted; the others are answered before the INTERRUPT is read.
  #interrupt(request: Request): void {
    if (request.length < IN_HEADER_SIZE + FIXED_SIZE.Interrupt) return;
    const state = this.#suspended.get(uniqueKey(request.u32(0), request.u32(4)));
    if (state !== undefined) state.wasInterrupted = true;
  }

  #init(request: Request): void {
    const reply = this.#reply;
    reply.reset();
    if (request.length < IN_HEADER_SIZE + FIXED_SIZE.Init || this.#connection !== undefined) {
      this.#send(request, Errno.EINVAL);
      return;
    }
    const major = request.u32(0);
    const minor = request.u32(4);
    if (major < KERNEL_MAJOR || (major === KERNEL_MAJOR && minor < OLDEST_MINOR)) {
      this.#log(`the kernel speaks FUSE ${major}.${minor}; at least 7.${OLDEST_MINOR} is needed`);
      this.#send(request, Errno.EPROTO);
      return;
    }
    const offered = request.u32(12);
    const hasSecondFlags = (offered & InitFlag.INIT_EXT) !== 0 && request.length >= IN_HEADER_SIZE + 20;
    const offered2 = hasSecondFlags ? request.u32(16) : 0;
    const wanted2 = InitFlag2.NO_EXPORT_SUPPORT | (this.#options.passthrough ? InitFlag2.PASSTHROUGH : 0);
    const flags2 = wanted2 & offered2;
    const passthrough = (flags2 & InitFlag2.PASSTHROUGH) !== 0;
    const fields = {
      minor: KERNEL_MINOR,
      maxReadahead: Math.max(request.u32(8), MAX_WRITE),
      flags: this.#wantedFlags() & offered,
      flags2,
      maxBackground: 64,
      congestionThreshold: 48,
      maxWrite: MAX_WRITE,
      maxPages: MAX_PAGES,
      maxStackDepth: passthrough ? 2 : 0,
    };
    // A newer major version: name ours and wait for the kernel's second INIT.
    if (major > KERNEL_MAJOR) {
      reply.init(fields);
      this.#send(request, Errno.OK);
      return;
    }
    const connection = { minor: Math.min(minor, KERNEL_MINOR), passthrough, fd: this.fd };
    if (!this.#guarded("INIT", () => this.#fs.init?.(connection, this))) {
      this.#send(request, Errno.EIO);
      return;
    }
    this.#connection = connection;
    reply.init(fields);
    this.#send(request, Errno.OK);
    this.#options.onReady?.(connection);
  }

  // The kernel has no way back from READDIRPLUS to READDIR.
  #wantedFlags(): number {
    return this.#fs.readdirplus ? WANTED : WANTED & ~InitFlag.DO_READDIRPLUS;
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#guarded("destroy", () => this.#fs.destroy?.());
  }

  #log(message: string): void {
    this.#options.log?.(message);
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function uniqueKey(low: number, high: number): string {
  return `${high}:${low}`;
}

/** SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU: a thread that only stops and goes on wants its answer. */
const STOPPING = [18, 19, 20, 21, 22].reduce((mask, signal) => mask | (1n << BigInt(signal - 1)), 0n);

/**
 * Whether a signal waits for this thread that would end or interrupt what it does. The kernel also interrupts a request when the
 * thread is about to be frozen: then there is none. One that is not to be found has died, or is of another pid namespace.
 */
function hasSignalPending(thread: number): boolean {
  let status: string;
  try {
    status = readFileSync(`/proc/${thread}/status`, "latin1");
  } catch {
    return true;
  }
  const mask = (name: string): bigint =>
    BigInt(`0x${new RegExp(`^${name}:\\s*(\\w+)$`, "m").exec(status)?.[1] ?? "0"}`);
  return ((mask("SigPnd") | mask("ShdPnd")) & ~mask("SigBlk") & ~STOPPING) !== 0n;
}
