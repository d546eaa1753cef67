import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const AUTHORITY_DAYS = 30;
const LEAF_DAYS = 7;
/** A wildcard has as many names as the box cares to ask for; those used least recently are made again. */
const LEAVES = 256;

/** A certificate for one name, with its key, as node:tls takes them. */
export interface Leaf {
  readonly key: string;
  readonly certificate: string;
}

/**
 * A certificate authority for one sandbox. It can vouch for the names that it was made for, those below them, and nothing else:
 * its own certificate says so (critical name constraints), so that not even its key would be of use against another name.
 * The key never leaves this object. A clock in the box may be an hour behind.
 */
export class SandboxAuthority {
  /** DER. */
  readonly certificate: Buffer;
  readonly #names: readonly string[];
  readonly #key: KeyObject;
  readonly #subject: Buffer;
  readonly #keyId: Buffer;
  readonly #expiresAtMs: number;
  readonly #clock: () => number;
  readonly #leaves = new Map<string, { readonly leaf: Leaf; readonly context: SecureContext; renewAtMs: number }>();

  /** The names are in normal form; `*.example.com` and `example.com` may both be vouched for by the same constraint. */
  constructor(names: readonly string[], clock: () => number = Date.now) {
    this.#names = [...new Set(names.map(withoutWildcard))];
    this.#clock = clock;
    const { publicKey, privateKey } = newKey();
    this.#key = privateKey;
    this.#keyId = keyId(publicKey);
    this.#subject = distinguishedName(`AgentFense sandbox ${randomBytes(8).toString("hex")}`);
    const now = clock();
    this.#expiresAtMs = now + AUTHORITY_DAYS * DAY_MS;
    this.certificate = certificate({
      issuer: this.#subject,
      subject: this.#subject,
      publicKey,
      fromMs: now - HOUR_MS,
      untilMs: this.#expiresAtMs,
      signer: privateKey,
      extensions: [
        extension(OID.basicConstraints, sequence(TRUE, integer(Buffer.of(0))), { critical: true }),
        extension(OID.keyUsage, bitString(Buffer.of(0x06), 1), { critical: true }), // keyCertSign, cRLSign
        extension(OID.subjectKeyId, tagged(Tag.octetString, this.#keyId)),
        extension(OID.nameConstraints, nameConstraints(this.#names), { critical: true }),
      ],
    });
  }

  get pem(): string {
    return pemOf(this.certificate);
  }

  /** Whether a certificate for this name would be believed. */
  covers(host: string): boolean {
    return this.#names.some((name) => host === name || host.endsWith(`.${name}`));
  }

  /** One for a name that is not covered can be made, and no client believes it. */
  leafFor(host: string): Leaf {
    return this.#leaf(host).leaf;
  }

  /** The same, ready for a TLS server. */
  contextFor(host: string): SecureContext {
    return this.#leaf(host).context;
  }

  #leaf(host: string): { readonly leaf: Leaf; readonly context: SecureContext } {
    const now = this.#clock();
    const known = this.#leaves.get(host);
    this.#leaves.delete(host);
    const kept = known !== undefined && now < known.renewAtMs ? known : this.#make(host, now);
    this.#leaves.set(host, kept);
    if (this.#leaves.size > LEAVES) this.#leaves.delete(this.#leaves.keys().next().value!);
    return kept;
  }

  #make(host: string, now: number): { leaf: Leaf; context: SecureContext; renewAtMs: number } {
    const { publicKey, privateKey } = newKey();
    const der = certificate({
      issuer: this.#subject,
      // A common name has 64 characters at most; what counts are the alternative names.
      subject: distinguishedName(host.length <= 64 ? host : "AgentFense"),
      publicKey,
      fromMs: now - HOUR_MS,
      untilMs: Math.min(now + LEAF_DAYS * DAY_MS, this.#expiresAtMs),
      signer: this.#key,
      extensions: [
        extension(OID.basicConstraints, sequence(), { critical: true }),
        extension(OID.keyUsage, bitString(Buffer.of(0x80), 7), { critical: true }), // digitalSignature
        extension(OID.extendedKeyUsage, sequence(oid(OID.serverAuthentication))),
        extension(OID.subjectAlternativeName, sequence(tagged(Tag.dnsName, Buffer.from(host, "ascii")))),
        extension(OID.subjectKeyId, tagged(Tag.octetString, keyId(publicKey))),
        extension(OID.authorityKeyId, sequence(tagged(Tag.context0Primitive, this.#keyId))),
      ],
    });
    const leaf = { key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(), certificate: pemOf(der) };
    const context = createSecureContext({ key: leaf.key, cert: leaf.certificate, minVersion: "TLSv1.2" });
    return { leaf, context, renewAtMs: now + (LEAF_DAYS - 1) * DAY_MS };
  }
}

/** DER as text. */
function pemOf(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

/** The certificates of a bundle, as DER; what stands between them is left out. */
export function certificatesIn(pem: string): Buffer[] {
  const blocks = pem.matchAll(/-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g);
  return [...blocks].map(([, body = ""]) => Buffer.from(body, "base64"));
}

/**
 * A store of trusted certificates for Java, in its oldest format, which every version reads: magic number, version 2, the count;
 * for each certificate the tag 2, an alias, milliseconds, a type, length and DER; at the end a SHA-1 over the password in UTF-16,
 * a fixed phrase and all of this. The password is Java's usual one and keeps nothing secret.
 */
export function javaTrustStore(certificates: readonly Buffer[], nowMs: number = Date.now()): Buffer {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(nowMs));
  const entries = certificates.flatMap((der, index) => [
    uint32(2),
    javaText(`certificate-${index}`),
    time,
    javaText("X.509"),
    uint32(der.length),
    der,
  ]);
  const store = Buffer.concat([uint32(0xfeedfeed), uint32(2), uint32(certificates.length), ...entries]);
  const password = Buffer.from(JAVA_PASSWORD, "utf16le").swap16();
  const seal = createHash("sha1").update(password).update("Mighty Aphrodite").update(store).digest();
  return Buffer.concat([store, seal]);
}

export const JAVA_PASSWORD = "changeit";

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function javaText(text: string): Buffer {
  const bytes = Buffer.from(text, "ascii");
  return Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 0xff), bytes]);
}

function withoutWildcard(name: string): string {
  return name.startsWith("*.") ? name.slice(2) : name;
}

function newKey(): { publicKey: Buffer; privateKey: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { publicKey: publicKey.export({ type: "spki", format: "der" }), privateKey };
}

/** RFC 5280, 4.2.1.2: a hash over the key's bits, which for P-256 are the last 65 bytes. */
function keyId(publicKey: Buffer): Buffer {
  return createHash("sha1").update(publicKey.subarray(-65)).digest();
}

/** RFC 5280, 4.1. */
function certificate(options: {
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly publicKey: Buffer;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly extensions: readonly Buffer[];
  readonly signer: KeyObject;
}): Buffer {
  const algorithm = sequence(oid(OID.ecdsaWithSha256));
  const serial = randomBytes(16);
  serial[0] = (serial[0]! & 0x7f) | 0x40; // positive, and of one length
  const content = sequence(
    tagged(Tag.context0, integer(Buffer.of(2))), // version 3
    integer(serial),
    algorithm,
    options.issuer,
    sequence(time(options.fromMs), time(options.untilMs)),
    options.subject,
    options.publicKey,
    tagged(Tag.context3, sequence(...options.extensions)),
  );
  return sequence(content, algorithm, bitString(sign("sha256", content, options.signer), 0));
}

/** Names are permitted one by one. A constraint holds for the kind of name it mentions, so that addresses are excluded as well. */
function nameConstraints(names: readonly string[]): Buffer {
  assert(names.length > 0, "without a permitted name an authority could vouch for every name");
  const permitted = names.map((name) => sequence(tagged(Tag.dnsName, Buffer.from(name, "ascii"))));
  const excluded = [Buffer.alloc(8), Buffer.alloc(32)].map((range) => sequence(tagged(Tag.ipAddress, range)));
  return sequence(tagged(Tag.context0, ...permitted), tagged(Tag.context1, ...excluded));
}

const OID = {
  basicConstraints: "2.5.29.19",
  keyUsage: "2.5.29.15",
  extendedKeyUsage: "2.5.29.37",
  subjectKeyId: "2.5.29.14",
  authorityKeyId: "2.5.29.35",
  subjectAlternativeName: "2.5.29.17",
  nameConstraints: "2.5.29.30",
  serverAuthentication: "1.3.6.1.5.5.7.3.1",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  commonName: "2.5.4.3",
} as const;

const Tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
  context0: 0xa0,
  context1: 0xa1,
  context3: 0xa3,
  context0Primitive: 0x80,
  dnsName: 0x82,
  ipAddress: 0x87,
} as const;

const TRUE = Buffer.of(Tag.boolean, 1, 0xff);

function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  if (body.length < 0x80) return Buffer.concat([Buffer.of(tag, body.length), body]);
  const length = Buffer.from(body.length.toString(16).padStart(body.length > 0xff ? 4 : 2, "0"), "hex");
  return Buffer.concat([Buffer.of(tag, 0x80 | length.length), length, body]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(Tag.sequence, ...parts);
}

function integer(bytes: Buffer): Buffer {
  return tagged(Tag.integer, bytes);
}

function bitString(bytes: Buffer, unusedBits: number): Buffer {
  return tagged(Tag.bitString, Buffer.of(unusedBits), bytes);
}

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const digits = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return tagged(Tag.oid, Buffer.from(bytes));
}

function extension(id: string, value: Buffer, { critical = false } = {}): Buffer {
  return sequence(oid(id), ...(critical ? [TRUE] : []), tagged(Tag.octetString, value));
}

function distinguishedName(commonName: string): Buffer {
  return sequence(tagged(Tag.set, sequence(oid(OID.commonName), tagged(Tag.utf8, Buffer.from(commonName, "ascii")))));
}

/** RFC 5280, 4.1.2.5: two digits for the year before 2050, four after. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "");
  const isEarly = new Date(ms).getUTCFullYear() < 2050;
  return tagged(isEarly ? Tag.utcTime : Tag.generalizedTime, Buffer.from(isEarly ? digits.slice(2) : digits, "ascii"));
}
