import type { Socket } from "node:net";
import { PassThrough, type Readable, Writable } from "node:stream";
import { ReadStream } from "node:tty";
import { Errno, processes, syscalls } from "@agentfense/fuse";
import type { ProcessExit, TerminalProcess, TerminalSize } from "../backend/backend.ts";
import { IsolationError } from "../backend/isolation-error.ts";
import type { Command } from "./command.ts";
import { exhausted } from "./descriptors.ts";

export interface PseudoTerminal {
  /** The side that the command gets; whoever hands it over closes it. */
  readonly otherSide: number;
  readonly master: number;
  readonly stream: Socket;
}

/** Takes the master, also when it fails. */
export function openPseudoTerminal(master: number, size: TerminalSize): PseudoTerminal {
  try {
    setSize(master, size);
    const otherSide = processes.otherSideOf(master);
    if (otherSide < 0) throw exhausted("open of a terminal", otherSide);
    const stream = new ReadStream(master);
    syscalls.setNonblocking(master);
    stream.on("error", () => {}); // EIO: nobody has the other side open any more
    return { otherSide, master, stream };
  } catch (error) {
    syscalls.close(master);
    throw error;
  }
}

/** A command on a terminal of the box. */
export function boxTerminal(command: Command, exit: Promise<ProcessExit>, terminal: PseudoTerminal): TerminalProcess {
  const { stream, master } = terminal;
  return {
    input: new TerminalInput(terminal),
    output: endingQuietly(stream),
    exit,
    resize: async (size) => {
      if (!stream.destroyed) setSize(master, size);
    },
    signal: async (signalNumber) => command.signal(signalNumber),
    kill: () => command.kill(),
  };
}

const RETRY_MS = 10;

/**
 * What is typed. libuv would write to a terminal as if it always had room, and a command that does not read could stop the
 * server; here a full terminal is tried again later, and the writer of this stream waits.
 */
class TerminalInput extends Writable {
  readonly #terminal: PseudoTerminal;

  constructor(terminal: PseudoTerminal) {
    super({ highWaterMark: 16 * 1024 });
    this.#terminal = terminal;
    terminal.stream.once("close", () => this.destroy());
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const { stream, master } = this.#terminal;
    // A terminal that is gone has nobody to read the rest: it counts as written.
    const written = stream.destroyed ? chunk.length : syscalls.write(master, chunk, chunk.length);
    if (written === chunk.length || (written < 0 && written !== -Errno.EAGAIN)) done();
    else setTimeout(() => this._write(chunk.subarray(Math.max(0, written)), _encoding, done), RETRY_MS);
  }
}

/** Reading from a terminal whose other side is gone fails with EIO; for the reader that is the end. */
function endingQuietly(stream: Socket): Readable {
  const output = new PassThrough();
  stream.on("close", () => output.end());
  output.on("close", () => stream.destroy());
  stream.pipe(output, { end: false });
  return output;
}

function setSize(master: number, { columns, rows }: TerminalSize): void {
  const isValid = (count: number): boolean => Number.isInteger(count) && count > 0 && count <= 0xffff;
  if (!isValid(columns) || !isValid(rows)) {
    throw new IsolationError("INVALID_ARGUMENT", `a terminal cannot have ${columns} columns and ${rows} rows`);
  }
  const code = processes.setTerminalSize(master, columns, rows);
  if (code < 0) throw exhausted("TIOCSWINSZ", code);
}
