import { randomInt } from "node:crypto";
import { invalid } from "../backend/isolation-error.ts";
import {
  covers,
  isConditional,
  NetworkPolicy,
  type NetworkRule,
  normalHost,
  parseNetworkRule,
  TLS_PORT,
} from "./policy.ts";
import { type Replacement, StreamReplacer } from "./stream-replacer.ts";

/** Where in a request a secret belongs. Anywhere else its placeholder travels as it is. */
export type SecretPlace =
  | { readonly kind: "header"; readonly name: string }
  | { readonly kind: "bearer" }
  | { readonly kind: "basic" }
  | { readonly kind: "query"; readonly key: string }
  | { readonly kind: "body" };

/** What is known of a secret outside of the network's thread: all but its value. */
export interface SecretRule {
  /** The name of the variable that holds the placeholder in the box. */
  readonly name: string;
  /** Names as in a network rule, `*.example.com` among them; towards these alone it is put in. */
  readonly hosts: readonly string[];
  readonly place: SecretPlace;
}

export interface SecretWithValue extends SecretRule {
  readonly value: string;
}

/** In the network's thread. Both texts are of one length. */
export interface Secret extends SecretWithValue {
  readonly placeholder: string;
}

/** The hosts whose connections have to be opened: those of secrets, and those of lines with methods or paths. */
export function openedNames(rules: readonly NetworkRule[], secrets: readonly SecretRule[] = []): string[] {
  const names = [...rules.filter(isConditional).map(({ host }) => host), ...secrets.flatMap(({ hosts }) => hosts)];
  return [...new Set(names)];
}

/** A list with the hosts that its secrets are for: who names a host for a secret wants to reach it, through TLS. */
export function withSecretHosts(rules: readonly NetworkRule[], secrets: readonly SecretRule[]): readonly NetworkRule[] {
  const policy = NetworkPolicy.of(rules);
  const missing = openedNames([], secrets).filter((host) => policy.ruleFor(host, TLS_PORT) === undefined);
  return [...rules, ...missing.map((host) => parseNetworkRule({ host, ports: [TLS_PORT] }))];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
/** Shorter ones occur in texts by chance, and would be masked there. */
const SHORTEST = 8;
const LONGEST = 8192;
const MOST_HOSTS = 32;
/** These say how a message is read and where it goes. */
const NOT_FOR_SECRETS = new Set([
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "upgrade",
  "expect",
  "te",
]);

export function parseSecretRule(name: string, hosts: unknown, place: unknown): SecretRule {
  if (!NAME.test(name))
    throw invalid(`${JSON.stringify(name.slice(0, 200))} is no name of a secret`, "it becomes a variable");
  if (!Array.isArray(hosts) || hosts.length === 0 || hosts.length > MOST_HOSTS) {
    throw invalid(`the secret ${name} needs hosts that it may be sent to, ${MOST_HOSTS} at most`);
  }
  return {
    name,
    hosts: [...new Set(hosts.map((host) => secretHost(name, host)))],
    place: parseSecretPlace(name, place),
  };
}

function secretHost(name: string, host: unknown): string {
  const text = typeof host === "string" ? host : "";
  const isWildcard = text.startsWith("*.");
  const normal = normalHost(isWildcard ? text.slice(2) : text);
  if (normal === undefined) {
    throw invalid(`a host of the secret ${name} is no full name: ${JSON.stringify(host)?.slice(0, 200)}`);
  }
  return isWildcard ? `*.${normal}` : normal;
}

/** `header x-api-key`, `bearer`, `basic`, `query key` or `body`. */
function parseSecretPlace(secret: string, value: unknown): SecretPlace {
  const text = typeof value === "string" ? value : "";
  if (text === "bearer" || text === "basic" || text === "body") return { kind: text };
  const [kind, name = "", ...more] = text.split(" ");
  if (more.length === 0 && TOKEN.test(name)) {
    if (kind === "query") return { kind, key: name };
    if (kind === "header" && !NOT_FOR_SECRETS.has(name.toLowerCase())) return { kind, name: name.toLowerCase() };
  }
  throw invalid(
    `the secret ${secret} cannot be put in ${JSON.stringify(value)?.slice(0, 200)}`,
    'it goes into "header NAME", "bearer", "basic", "query KEY" or "body"',
  );
}

/** As it is asked for. */
export function placeText(place: SecretPlace): "bearer" | "basic" | "body" | `header ${string}` | `query ${string}` {
  if (place.kind === "header") return `header ${place.name}`;
  return place.kind === "query" ? `query ${place.key}` : place.kind;
}

/** Refuses a value that cannot be put into a request as it is. The message has nothing of it. */
export function checkSecretValue({ name, place }: SecretRule, value: string): void {
  const refuse = (what: string) => invalid(`the value of the secret ${name} ${what}`);
  if (value.length < SHORTEST || value.length > LONGEST) {
    throw refuse(`has ${value.length} characters; ${SHORTEST} to ${LONGEST} are possible`);
  }
  if (!/^[\x20-\x7e]*$/.test(value)) throw refuse("has other characters than those of one line of plain ASCII");
  if (value !== value.trim()) throw refuse("begins or ends with a space");
  if (place.kind === "body" && /["\\]/.test(value))
    throw refuse("has a quote or a backslash, which a body would escape");
}

/** What keys of well-known kinds begin with; programs look at it. The longer ones first. */
const PREFIXES = [
  "sk-ant-api03-",
  "sk-ant-oat01-",
  "sk-ant-",
  "sk-proj-",
  "sk-svcacct-",
  "sk-admin-",
  "sk-or-v1-",
  "sk_live_",
  "sk_test_",
  "rk_live_",
  "sk-",
  "github_pat_",
  "ghp_",
  "gho_",
  "ghs_",
  "ghu_",
  "ghr_",
  "glpat-",
  "xoxb-",
  "xoxp-",
  "xapp-",
  "AKIA",
  "ASIA",
  "AIza",
  "npm_",
  "pypi-",
  "hf_",
  "gsk_",
  "xai-",
  "pplx-",
  "dop_v1_",
  "SG.",
];

const ALPHABETS = [
  { form: /^[0-9a-f]{32,}$/, characters: "0123456789abcdef" },
  { form: /^[0-9A-F]{32,}$/, characters: "0123456789ABCDEF" },
  { form: /./, characters: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" },
];
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * A random text that programs take for a key of the same kind: as long, with the prefix that its kind is known by, in
 * hexadecimal digits where it is. It needs no escaping anywhere, so that it arrives as it was given. Nothing else of the value is in it.
 */
export function placeholderFor(value: string): string {
  const prefix = PREFIXES.find((one) => value.startsWith(one) && value.length - one.length >= SHORTEST) ?? "";
  const rest = value.slice(prefix.length);
  if (UUID.test(rest)) return prefix + rest.replace(/[^-]/g, () => random(ALPHABETS[0]!.characters));
  const { characters } = ALPHABETS.find(({ form }) => form.test(rest))!;
  return prefix + Array.from(rest, () => random(characters)).join("");
}

function random(characters: string): string {
  return characters[randomInt(characters.length)]!;
}

/** A request's target and headers, in their order, names as they were written. */
export interface RequestHead {
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** A secret's placeholder that was somewhere else than where the secret belongs. */
export type Misplaced = (secret: SecretRule, where: string) => void;
/** A secret whose value was put in. */
export type Used = (secret: SecretRule) => void;

/** How many values that are not sent any more are masked all the same: a host may still know them. */
const MOST_PAST = 16;

/** The secrets of one sandbox. */
export class SecretSet {
  #secrets: readonly Secret[];
  #past: readonly Secret[] = [];

  constructor(secrets: readonly Secret[]) {
    this.#secrets = secrets;
  }

  /**
   * From now on the placeholder stands for another value, which is as long, or for none. Gives the hosts of the value that it
   * stood for: connections to them would send and mask that one.
   */
  renew(name: string, next: SecretWithValue | undefined): readonly string[] {
    const current = this.#secrets.find((secret) => secret.name === name);
    const placeholder = (current ?? this.#past.find((secret) => secret.name === name))?.placeholder;
    if (placeholder === undefined) return [];
    if (current !== undefined) this.#past = [current, ...this.#past].slice(0, MOST_PAST);
    const others = this.#secrets.filter((secret) => secret !== current);
    this.#secrets = next?.value.length === placeholder.length ? [...others, { ...next, placeholder }] : others;
    return [...(current?.hosts ?? []), ...(next?.hosts ?? [])];
  }

  /** Whether it has a value to be sent. */
  has(name: string): boolean {
    return this.#secrets.some((secret) => secret.name === name);
  }

  get isEmpty(): boolean {
    return this.#secrets.length === 0;
  }

  /** Whether any of them may be sent to the host. */
  isFor(host: string): boolean {
    return this.#secrets.some((secret) => belongsTo(secret, host));
  }

  /** The head with values in their places. `host` is undefined where nothing may be put in, as on a connection without TLS. */
  intoHead(head: RequestHead, host: string | undefined, onMisplaced: Misplaced, onUsed: Used = () => {}): RequestHead {
    let result = head;
    for (const secret of this.#secrets) {
      if (!belongsTo(secret, host)) continue;
      const before = result;
      result = REPLACE[secret.place.kind](before, secret);
      if (result !== before) onUsed(secret);
    }
    for (const secret of this.#secrets) {
      for (const where of placesOf(secret.placeholder, result)) onMisplaced(secret, where);
    }
    return result;
  }

  /** For the body of one request. Nothing when there is nothing to look for. */
  intoBody(host: string | undefined, onMisplaced: Misplaced, onUsed: Used = () => {}): StreamReplacer | undefined {
    if (this.isEmpty) return undefined;
    return new StreamReplacer(
      this.#secrets.map((secret) => ({
        from: Buffer.from(secret.placeholder),
        to: secret.place.kind === "body" && belongsTo(secret, host) ? Buffer.from(secret.value) : undefined,
        once: true,
        onFound: (isReplaced) => {
          if (isReplaced) onUsed(secret);
          else onMisplaced(secret, "the body");
        },
      })),
    );
  }

  /** For one response of the host: values become placeholders again, also where they are encoded. */
  outOf(host: string): ResponseMask | undefined {
    const sent = [...this.#secrets, ...this.#past].filter((secret) => belongsTo(secret, host));
    return sent.length === 0 ? undefined : new ResponseMask(sent);
  }
}

/** Masks the header and the body of a response. */
export class ResponseMask {
  readonly #replacements: readonly Replacement[];
  /** What is looked for, as text. */
  readonly #looksFor: readonly string[];
  readonly #longest: number;

  constructor(secrets: readonly Secret[]) {
    this.#replacements = secrets.flatMap(masks);
    this.#looksFor = this.#replacements.map(({ from }) => from.toString("latin1"));
    // Percent-encoding makes three characters of one: how many of a value's characters need it must not show.
    this.#longest = 3 * secrets.reduce((most, { value }) => Math.max(most, value.length), 0);
  }

  text(value: string): string {
    if (!this.#looksFor.some((one) => value.includes(one))) return value;
    const replacer = this.stream();
    const done = replacer.push(Buffer.from(value, "latin1"));
    return Buffer.concat([done, replacer.flush()]).toString("latin1");
  }

  stream(): StreamReplacer {
    return new StreamReplacer(this.#replacements, this.#longest);
  }
}

function belongsTo({ hosts }: SecretRule, host: string | undefined): boolean {
  return host !== undefined && covers(hosts, host);
}

type Replace = (head: RequestHead, secret: Secret) => RequestHead;

/** In each place the placeholder stands once and by itself, or nothing is put in. */
const REPLACE: Readonly<Record<SecretPlace["kind"], Replace>> = {
  header: (head, secret) =>
    inHeader(head, (secret.place as { name: string }).name, (value) => {
      const parts = value.split(secret.placeholder);
      return parts.length === 2 ? parts.join(secret.value) : undefined;
    }),
  bearer: (head, secret) =>
    inHeader(head, "authorization", (value) => {
      const [, scheme, token] = /^(bearer +)(\S+)$/i.exec(value) ?? [];
      return token === secret.placeholder ? `${scheme}${secret.value}` : undefined;
    }),
  basic: (head, secret) =>
    inHeader(head, "authorization", (value) => {
      const basic = readBasic(value);
      if (basic === undefined) return undefined;
      const { scheme, user, password } = basic;
      const put = (part: string) => (part === secret.placeholder ? secret.value : part);
      if (user === password || (put(user) === user && put(password) === password)) return undefined;
      return `${scheme}${Buffer.from(`${put(user)}:${put(password)}`, "latin1").toString("base64")}`;
    }),
  query: (head, secret) => {
    const { key } = secret.place as { key: string };
    const [path = "", ...rest] = head.target.split("?");
    const fields = rest.join("?").split("&");
    const places = fields.flatMap((field, at) => (decoded(field.split("=", 1)[0]!) === key ? [at] : []));
    const [at, second] = places;
    if (at === undefined || second !== undefined) return head;
    const name = fields[at]!.split("=", 1)[0]!;
    if (decoded(fields[at]!.slice(name.length + 1)) !== secret.placeholder) return head;
    fields[at] = `${name}=${encodeURIComponent(secret.value)}`;
    return { ...head, target: `${path}?${fields.join("&")}` };
  },
  body: (head) => head,
};

/** Changes the value of a header that is there once; `change` returns nothing when it is to stay. */
function inHeader(head: RequestHead, name: string, change: (value: string) => string | undefined): RequestHead {
  const places = head.headers.flatMap(([one], at) => (one.toLowerCase() === name ? [at] : []));
  const [at, second] = places;
  if (at === undefined || second !== undefined) return head;
  const value = change(head.headers[at]![1]);
  if (value === undefined) return head;
  return { ...head, headers: head.headers.with(at, [head.headers[at]![0], value]) };
}

function readBasic(value: string): { scheme: string; user: string; password: string } | undefined {
  const [, scheme = "", encoded] = /^(basic +)([A-Za-z0-9+/_-]+={0,2})$/i.exec(value) ?? [];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, "base64").toString("latin1");
  const colon = text.indexOf(":");
  return colon === -1 ? undefined : { scheme, user: text.slice(0, colon), password: text.slice(colon + 1) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/** Where in a head a placeholder stands, for people. */
function placesOf(placeholder: string, { target, headers }: RequestHead): string[] {
  const places = target.includes(placeholder) ? ["the address"] : [];
  for (const [name, value] of headers) {
    const basic = readBasic(value);
    const isIn = [name, value, basic?.user, basic?.password].some((text) => text?.includes(placeholder));
    if (isIn)
      places.push(
        name.includes(placeholder) ? "the name of a header" : `the header ${name.toLowerCase().slice(0, 64)}`,
      );
  }
  return places;
}

/** A value as servers send it back: as it is, escaped, in hexadecimal, in base64 with anything before and after it. */
function masks({ value, placeholder }: Secret): Replacement[] {
  const forms = new Map<string, string>([[value, placeholder]]);
  const add = (from: string, to: string) => {
    if (!forms.has(from)) forms.set(from, to.length === from.length ? to : "*".repeat(from.length));
  };
  add(JSON.stringify(value).slice(1, -1), placeholder);
  add(encodeURIComponent(value), placeholder);
  add(encodeURIComponent(value).replaceAll("%20", "+"), placeholder);
  const hex = (text: string) => Buffer.from(text).toString("hex");
  add(hex(value), hex(placeholder));
  add(hex(value).toUpperCase(), hex(placeholder).toUpperCase());
  for (const before of [0, 1, 2]) {
    const [from, to] = [base64Core(value, before), base64Core(placeholder, before)];
    add(from, to);
    add(inUrlAlphabet(from), inUrlAlphabet(to));
  }
  return [...forms].map(([from, to]) => ({ from: Buffer.from(from), to: Buffer.from(to) }));
}

/** The characters that depend on the text alone, when so many bytes stand before it in a group of three. */
function base64Core(text: string, before: number): string {
  const encoded = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]).toString("base64");
  return encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + text.length) * 8) / 6));
}

function inUrlAlphabet(text: string): string {
  return text.replaceAll("+", "-").replaceAll("/", "_");
}
