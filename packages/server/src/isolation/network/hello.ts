import { normalHost } from "./policy.ts";

/** What a client's first words came to. */
export type Hello =
  | { readonly kind: "incomplete" }
  | {
      readonly kind: "hello";
      readonly serverName: string;
      readonly protocols: readonly string[];
      /**
       * Whether it has, or may have, another name in it that only some front of the host can read (ECH). Browsers always send something
       * that looks like it and is none.
       */
      readonly mayBeEncrypted: boolean;
    }
  | { readonly kind: "refused"; readonly sentence: string; readonly alert: number };

/** RFC 8446, 6. */
export const Alert = { handshakeFailure: 40, decodeError: 50, protocolVersion: 70, unrecognizedName: 112 } as const;

/** A fatal alert as a record, which a client reports as the reason. */
export function alertRecord(alert: number): Buffer {
  return Buffer.from([21, 3, 3, 0, 2, 2, alert]);
}

const HELLO_BYTES = 16 * 1024;
const RECORD_HEAD = 5;
const RECORD_BYTES = 16 * 1024;
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const TLS_1_2 = 0x0303;

const Extension = {
  serverName: 0,
  protocols: 16,
  versions: 43,
  encryptedHello: 0xfe0d,
  encryptedName: 0xffce,
} as const;

/**
 * Reads the name of the server from the first message of a TLS client (RFC 8446, 4.1.2; RFC 6066, 3), in however many pieces and
 * records it comes. There is one reading: whatever is not exactly as it should be is refused, since the real server might read
 * it otherwise.
 */
export class HelloReader {
  readonly #pieces: Buffer[] = [];
  #length = 0;
  /** What is left of the last piece, less than a record. */
  #pending: Buffer = Buffer.alloc(0);
  /** What the records carried. */
  #message: Buffer = Buffer.alloc(0);

  /** All that was read, for whoever goes on. */
  get bytes(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  read(piece: Buffer): Hello {
    this.#pieces.push(piece);
    this.#length += piece.length;
    this.#pending = Buffer.concat([this.#pending, piece]);
    try {
      for (let record = this.#nextRecord(); record !== undefined; record = this.#nextRecord()) {
        this.#message = Buffer.concat([this.#message, record]);
        const body = helloIn(this.#message);
        if (body !== undefined) return clientHello(new Bytes(body));
      }
    } catch (error) {
      if (error instanceof Refusal) return { kind: "refused", sentence: error.message, alert: error.alert };
      throw error;
    }
    return this.#length < HELLO_BYTES ? { kind: "incomplete" } : tooLong();
  }

  /** What the next record carries, when all of it is there. */
  #nextRecord(): Buffer | undefined {
    const bytes = this.#pending;
    if (bytes.length > 0 && bytes[0] !== HANDSHAKE)
      throw new Refusal(Alert.decodeError, "only TLS is spoken at this port");
    if (bytes.length < RECORD_HEAD) return undefined;
    const end = RECORD_HEAD + bytes.readUInt16BE(3);
    if (bytes[1] !== 3 || end === RECORD_HEAD || end > RECORD_HEAD + RECORD_BYTES) throw malformed();
    if (bytes.length < end) return undefined;
    this.#pending = bytes.subarray(end);
    return bytes.subarray(RECORD_HEAD, end);
  }
}

/** The body of the ClientHello, when all of it is there. */
function helloIn(message: Buffer): Buffer | undefined {
  if (message.length < 4) return undefined;
  const end = 4 + message.readUIntBE(1, 3);
  // Nothing may come after it in its record: that would have been sent before the server's answer.
  if (message[0] !== CLIENT_HELLO || end > HELLO_BYTES || message.length > end) throw malformed();
  return message.length === end ? message.subarray(4) : undefined;
}

class Refusal extends Error {
  readonly alert: number;

  constructor(alert: number, sentence: string) {
    super(sentence);
    this.alert = alert;
  }
}

function tooLong(): Hello {
  return { kind: "refused", sentence: "the first message of the TLS client is too long", alert: Alert.decodeError };
}

function malformed(): Refusal {
  return new Refusal(Alert.decodeError, "the first message of the TLS client is malformed");
}

function clientHello(hello: Bytes): Hello {
  const version = hello.number(2);
  hello.take(32); // random
  if (hello.list(1).length > 32) throw malformed(); // session
  const suites = hello.list(2);
  if (suites.length < 2 || suites.length % 2 !== 0 || hello.list(1).length < 1) throw malformed();
  if (version < TLS_1_2) throw tooOld();
  const extensions = readExtensions(hello);
  const versions = extensions.get(Extension.versions);
  if (versions !== undefined && !offersEnough(versions)) throw tooOld();
  return {
    kind: "hello",
    serverName: readServerName(extensions.get(Extension.serverName)),
    protocols: readProtocols(extensions.get(Extension.protocols)),
    mayBeEncrypted: extensions.has(Extension.encryptedHello) || extensions.has(Extension.encryptedName),
  };
}

function tooOld(): Refusal {
  return new Refusal(Alert.protocolVersion, "TLS below 1.2 is refused by this sandbox's network");
}

function readExtensions(hello: Bytes): Map<number, Bytes> {
  const found = new Map<number, Bytes>();
  if (hello.length === 0) return found;
  const extensions = hello.list(2);
  if (hello.length > 0) throw malformed();
  while (extensions.length > 0) {
    const type = extensions.number(2);
    if (found.has(type)) throw malformed();
    found.set(type, extensions.list(2));
  }
  return found;
}

function offersEnough(extension: Bytes): boolean {
  const versions = extension.list(1);
  if (extension.length > 0 || versions.length % 2 !== 0) throw malformed();
  let isEnough = false;
  while (versions.length > 0) {
    const version = versions.number(2);
    isEnough ||= version === TLS_1_2 || version === TLS_1_2 + 1;
  }
  return isEnough;
}

function readServerName(extension: Bytes | undefined): string {
  if (extension === undefined) {
    throw new Refusal(
      Alert.unrecognizedName,
      "a TLS connection without the name of its server is refused by this sandbox's network",
    );
  }
  const names = extension.list(2);
  if (extension.length > 0) throw malformed();
  const kind = names.number(1);
  const text = names.list(2).take().toString("latin1");
  if (kind !== 0 || names.length > 0) throw malformed();
  const name = normalHost(text);
  // The dot of a full name does not belong here (RFC 6066, 3), and servers differ about it.
  if (name === undefined || name !== text.toLowerCase()) {
    throw new Refusal(Alert.unrecognizedName, "the TLS client names its server in an odd way");
  }
  return name;
}

function readProtocols(extension: Bytes | undefined): readonly string[] {
  if (extension === undefined) return [];
  const list = extension.list(2);
  if (extension.length > 0) throw malformed();
  const protocols: string[] = [];
  while (list.length > 0) protocols.push(list.list(1).take().toString("latin1"));
  return protocols;
}

/** Bytes that are read from the front, and never beyond their end. */
class Bytes {
  #left: Buffer;

  constructor(bytes: Buffer) {
    this.#left = bytes;
  }

  get length(): number {
    return this.#left.length;
  }

  take(count: number = this.#left.length): Buffer {
    if (count > this.#left.length) throw malformed();
    const taken = this.#left.subarray(0, count);
    this.#left = this.#left.subarray(count);
    return taken;
  }

  number(size: 1 | 2): number {
    return this.take(size).readUIntBE(0, size);
  }

  /** What follows its own length. */
  list(size: 1 | 2): Bytes {
    return new Bytes(this.take(this.number(size)));
  }
}
