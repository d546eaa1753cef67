import { Channel, Killed } from "./channel.ts";

export interface ByteSource {
  /** Undefined at the end. */
  read(): Promise<Uint8Array | undefined>;
  /** Nothing more is wanted. */
  close(): void;
}

export interface ByteSink {
  write(data: Uint8Array): Promise<void>;
}

/** What a command is connected to. */
export interface Stdio {
  readonly stdin: ByteSource;
  readonly stdout: ByteSink;
  readonly stderr: ByteSink;
  /** Aborts when the command is to end at once. */
  readonly signal: AbortSignal;
}

/** Bytes that are there already. */
export function fixedSource(content: Uint8Array): ByteSource {
  let left: Uint8Array | undefined = content.length === 0 ? undefined : content;
  return {
    async read() {
      const data = left;
      left = undefined;
      return data;
    },
    close: () => {},
  };
}

/** Both ends of a pipe. Ending the command ends the wait of its reader and of its writer. */
export class BytePipe implements ByteSource, ByteSink {
  readonly #channel: Channel<{ readonly data: Uint8Array }>;
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    this.#channel = new Channel(signal);
  }

  async write(data: Uint8Array): Promise<void> {
    await this.#channel.push({ data });
  }

  end(): void {
    this.#channel.end();
  }

  async read(): Promise<Uint8Array | undefined> {
    const item = await this.#channel.take(this.#signal);
    if (this.#signal.aborted) throw new Killed();
    return item?.data;
  }

  close(): void {
    this.#channel.abandon();
  }
}

export async function readAll(source: ByteSource): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for (let data = await source.read(); data !== undefined; data = await source.read()) pieces.push(data);
  return Buffer.concat(pieces);
}

/** Waits, or throws as soon as the command is to end. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    const wake = (): void => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", wake, { once: true });
  });
  if (signal.aborted) throw new Killed();
}
