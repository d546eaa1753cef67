import { type NetworkPolicy, refusal } from "./policy.ts";

/** Where the names of a sandbox live on its loopback device: 198.18.0.0/15 is nobody's address. */
export const SANDBOX_NETWORK = "198.18.0.0";
/** Our name server's own address in there. */
export const NAME_SERVER = "198.18.0.53";

/** The first 256 addresses are for us: the device's own and the name server's are among them. */
const FIRST = 256;
/** All but the last, which would be everybody's. */
const END = 2 ** 17 - 1;
/** More than a list's lines and a sandbox's connections together, so that there is always one to forget. */
const MOST_NAMES = 4096;

/**
 * The addresses of names: each has one of its own from its first question on. A box may ask for any number of names below a wildcard, so
 * the one that was asked for longest ago is forgotten, unless it is to be kept. Its address is given to another name only after all
 * others were, so that nobody who remembers it meets another host.
 */
export class NameTable {
  readonly #base: number;
  /** In the order in which they were last asked for. */
  readonly #places = new Map<string, number>();
  readonly #names = new Map<number, string>();
  readonly #isKept: (host: string) => boolean;
  #next = FIRST;

  constructor(isKept: (host: string) => boolean, network: string = SANDBOX_NETWORK) {
    this.#isKept = isKept;
    this.#base = numberOf(network);
  }

  addressOf(host: string): number {
    const place = this.#places.get(host) ?? this.#newPlace();
    this.#places.delete(host);
    this.#places.set(host, place);
    this.#names.set(place, host);
    return this.#base + place;
  }

  /** The name that an address stands for. */
  nameAt(address: string): string | undefined {
    return this.#names.get(numberOf(address) - this.#base);
  }

  #newPlace(): number {
    if (this.#places.size >= MOST_NAMES) this.#forgetOne();
    do this.#next = this.#next + 1 === END ? FIRST : this.#next + 1;
    while (this.#names.has(this.#next));
    return this.#next;
  }

  #forgetOne(): void {
    for (const [host, place] of this.#places) {
      this.#places.delete(host);
      if (this.#isKept(host)) this.#places.set(host, place);
      else {
        this.#names.delete(place);
        return;
      }
    }
  }
}

/** What a question came to, beside the answer to send. */
export interface NameAnswer {
  readonly message: Buffer;
  /** The name that was refused, where it could be one of a host. */
  readonly refused?: string;
}

/** What is known to those who answer. */
export interface NameSource {
  policy(): NetworkPolicy;
  addressOf(host: string): number;
}

const TYPE_A = 1;
const TYPE_OPT = 41;
const CLASS_IN = 1;
const TTL_SECONDS = 30;
const HEADER_BYTES = 12;
/** What we say that we take. */
const UDP_BYTES = 1232;
/** What everybody takes: no answer is longer, so none has to be cut. */
const ANSWER_BYTES = 512;
/** The root's name, type, room, flags, length. */
const OPT_BYTES = 11;
const EDE_OPTION = 15;
const EDE_BLOCKED = 15;

const Rcode = { OK: 0, FORMERR: 1, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, BADVERS: 16 } as const;

/**
 * Answers one DNS message (RFC 1035, 6891, 8914). A question is answered from the list and never passed on: what is in it goes nowhere. A of a
 * listed name is its address, everything else of it does not exist (NODATA); any other name does not exist, with the reason in an Extended
 * DNS Error for those who said that they understand it. Returns nothing for what is no question.
 */
export function answerName(query: Uint8Array, source: NameSource): NameAnswer | undefined {
  const bytes = Buffer.from(query.buffer, query.byteOffset, query.byteLength);
  if (bytes.length < HEADER_BYTES || (bytes[2]! & 0x80) !== 0) return undefined;
  const opcode = (bytes[2]! >> 3) & 0x0f;
  if (opcode !== 0) return { message: reply(bytes, { rcode: Rcode.NOTIMP }) };
  const question = readQuestion(bytes);
  if (question === undefined) return { message: reply(bytes, { rcode: Rcode.FORMERR }) };
  const { name, end, edns } = question;
  if (edns !== undefined && edns !== 0) return { message: reply(bytes, { end, edns: true, rcode: Rcode.BADVERS }) };
  const common = { end, edns: edns !== undefined };
  if (question.class !== CLASS_IN) return { message: reply(bytes, { ...common, rcode: Rcode.REFUSED }) };
  if (!source.policy().resolves(name)) {
    const sentence = refusal(name);
    return {
      message: reply(bytes, { ...common, rcode: Rcode.NXDOMAIN, sentence }),
      ...(isHostLike(name) ? { refused: name } : {}),
    };
  }
  if (question.type !== TYPE_A) return { message: reply(bytes, { ...common, rcode: Rcode.OK }) };
  return { message: reply(bytes, { ...common, rcode: Rcode.OK, address: source.addressOf(name) }) };
}

interface Question {
  /** Lower case, without a dot at the end. A byte that no host has is written as its number. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  /** Where it ends. */
  readonly end: number;
  /** The version that the asker speaks, if it said so. */
  readonly edns: number | undefined;
}

/** One question and at most a record that says what the asker understands; anything else is none. */
function readQuestion(bytes: Buffer): Question | undefined {
  const counts = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at));
  if (counts[0] !== 1 || counts[1] !== 0 || counts[2] !== 0 || counts[3]! > 1) return undefined;
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (;;) {
    const length = bytes[at];
    // More than 63 is a pointer, and there is nothing before a question to point to.
    if (length === undefined || length > 63 || at - HEADER_BYTES + length > 254) return undefined;
    at += 1;
    if (length === 0) break;
    if (at + length > bytes.length) return undefined;
    labels.push(labelText(bytes.subarray(at, at + length)));
    at += length;
  }
  if (at + 4 > bytes.length) return undefined;
  const question = {
    name: labels.join("."),
    type: bytes.readUInt16BE(at),
    class: bytes.readUInt16BE(at + 2),
    end: at + 4,
  };
  if (counts[3] === 0) return bytes.length === question.end ? { ...question, edns: undefined } : undefined;
  const record = bytes.subarray(question.end);
  if (record.length < OPT_BYTES || record[0] !== 0 || record.readUInt16BE(1) !== TYPE_OPT) return undefined;
  return record.readUInt16BE(9) === record.length - OPT_BYTES ? { ...question, edns: record[6] } : undefined;
}

function labelText(bytes: Buffer): string {
  // A dot inside of a label must not look like one between two.
  return bytes
    .toString("latin1")
    .replace(/[^A-Za-z0-9_-]/g, (byte) => `\\${byte.charCodeAt(0)}`)
    .toLowerCase();
}

/** Whether somebody may have meant a host: not a service's record, a reverse lookup or bytes. */
function isHostLike(name: string): boolean {
  return name.length > 0 && !/(?:^|\.)_|\\|\.arpa$/.test(name);
}

function reply(
  query: Buffer,
  options: {
    readonly rcode: number;
    /** Where the question ends that is repeated; without it none is. */
    readonly end?: number;
    readonly edns?: boolean;
    readonly address?: number;
    readonly sentence?: string;
  },
): Buffer {
  const { rcode, end = HEADER_BYTES, edns = false, address, sentence } = options;
  const header = Buffer.alloc(HEADER_BYTES);
  query.copy(header, 0, 0, 2);
  // Ours is the last word on the name (AA); whether recursion was wanted is repeated, and it is available (RA) in effect.
  header[2] = 0x84 | (query[2]! & 0x79);
  header[3] = 0x80 | (rcode & 0x0f);
  header.writeUInt16BE(end > HEADER_BYTES ? 1 : 0, 4);
  header.writeUInt16BE(address === undefined ? 0 : 1, 6);
  header.writeUInt16BE(edns ? 1 : 0, 10);
  return Buffer.concat([
    header,
    query.subarray(HEADER_BYTES, end),
    ...(address === undefined ? [] : [addressRecord(address)]),
    ...(edns ? [optRecord(rcode, sentence, ANSWER_BYTES - end)] : []),
  ]);
}

function addressRecord(address: number): Buffer {
  const record = Buffer.alloc(16);
  record.writeUInt16BE(0xc000 | HEADER_BYTES, 0); // the question's name
  record.writeUInt16BE(TYPE_A, 2);
  record.writeUInt16BE(CLASS_IN, 4);
  record.writeUInt32BE(TTL_SECONDS, 6);
  record.writeUInt16BE(4, 10);
  record.writeUInt32BE(address, 12);
  return record;
}

/** With a sentence, unless it is one about so long a name that there is no room for it. */
function optRecord(rcode: number, sentence: string | undefined, room: number): Buffer {
  const text = sentence === undefined ? Buffer.alloc(0) : extendedError(sentence);
  const option = text.length > room - OPT_BYTES ? Buffer.alloc(0) : text;
  const record = Buffer.alloc(OPT_BYTES);
  record.writeUInt16BE(TYPE_OPT, 1);
  record.writeUInt16BE(UDP_BYTES, 3);
  record[5] = rcode >> 4;
  record.writeUInt16BE(option.length, 9);
  return Buffer.concat([record, option]);
}

function extendedError(sentence: string): Buffer {
  const text = Buffer.from(sentence);
  const head = Buffer.alloc(6);
  head.writeUInt16BE(EDE_OPTION, 0);
  head.writeUInt16BE(2 + text.length, 2);
  head.writeUInt16BE(EDE_BLOCKED, 4);
  return Buffer.concat([head, text]);
}

function numberOf(address: string): number {
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}
