/** Keys of one kind in a text. Nothing of a key itself is in here, so that it can be printed. */
export interface KeysInText {
  /** For people and programs: `GitHub token`. */
  readonly kind: string;
  /** Where the first one begins, counted from 1. */
  readonly line: number;
  /** The part of the first one that every key of its kind has: `ghp_…`. */
  readonly masked: string;
  readonly count: number;
}

/** A kind of key that its first characters give away. */
interface KeyShape {
  readonly kind: string;
  readonly starts: readonly string[];
  /** What comes after the start. Its length has a bound, or no other key can begin within it. */
  readonly rest: RegExp;
}

const SHAPES: readonly KeyShape[] = [
  { kind: "AWS access key id", starts: ["AKIA", "ASIA"], rest: /[A-Z0-9]{16}(?!\w)/y },
  {
    kind: "GitHub token",
    starts: ["ghp_", "gho_", "ghs_", "ghu_", "ghr_"],
    rest: /[A-Za-z0-9]{36,255}(?!\w)/y,
  },
  { kind: "GitHub token", starts: ["github_pat_"], rest: /\w{50,255}(?!\w)/y },
  { kind: "GitLab token", starts: ["glpat-"], rest: /[\w-]{20,64}(?:\.\w{1,16}){0,2}(?!\w)/y },
  {
    kind: "Slack token",
    starts: ["xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-"],
    rest: /[A-Za-z0-9-]{20,255}(?!\w)/y,
  },
  { kind: "Stripe key", starts: ["sk_live_", "rk_live_"], rest: /[A-Za-z0-9]{16,255}(?!\w)/y },
  { kind: "Google API key", starts: ["AIza"], rest: /[\w-]{35}(?![\w-])/y },
  { kind: "npm token", starts: ["npm_"], rest: /[A-Za-z0-9]{36}(?!\w)/y },
  { kind: "Anthropic key", starts: ["sk-ant-"], rest: /[\w-]{24,255}(?![\w-])/y },
  { kind: "OpenAI key", starts: ["sk-proj-", "sk-svcacct-", "sk-admin-"], rest: /[\w-]{24,255}(?![\w-])/y },
  { kind: "OpenAI key", starts: ["sk-"], rest: /[A-Za-z0-9]{32,64}(?![\w-])/y },
  // A part has no dot in it, and a key begins only where a part does, so that each part is looked at three times at most.
  { kind: "JSON web token", starts: ["eyJ"], rest: /[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/y },
];

/** Names that are given secrets, up to where the value begins. Every repetition has a bound. */
const ASSIGNMENT =
  /(secret[_-]?access[_-]?key|secret[_-]?key(?:[_-]?base)?|(?:api|access|auth|private|encryption|signing)[_-]?key|secret|token|password|passwd|passphrase)["'\]]{0,2}[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}/gi;
/** Tokens that open nothing. */
const HARMLESS_NAME = /(?:next|page|continuation|csrf|xsrf|sync)[_-]?$/i;

/** In quotes, or alone up to the end of the line: what stands bare amid code is an expression. */
const QUOTED = /(["'`])([\w+/~.!@%^*-]{16,512}={0,2})\1/y;
const BARE = /([\w+/~.!@%^*-]{16,512}={0,2})[ \t]{0,8}(?:[\r\n#]|$)/y;

const PRIVATE_KEY = /(?:[A-Z0-9]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----/y;
/** The body of a private key begins within so many characters, or there is none. */
const NEAR = 400;

/** One key: where it begins, and what may be said of it. */
interface Key {
  readonly kind: string;
  readonly at: number;
  readonly masked: string;
}

/**
 * The keys that a text holds, one entry for each kind, in the order of their first places. It knows the shapes of usual
 * keys, and random-looking values of names such as `password`. What is evidently made up (`changeme`, `${TOKEN}`) does not
 * count. The time it takes grows with the length of the text and with nothing else that is in it.
 */
export function findKeys(text: string): KeysInText[] {
  const shaped = [...SHAPES.flatMap((shape) => shapedKeys(text, shape)), ...privateKeys(text)];
  const keys = [...shaped, ...assignedSecrets(text, new Set(shaped.map(({ at }) => at)))];
  keys.sort((a, b) => a.at - b.at);
  const kinds = new Map<string, KeysInText>();
  let line = 1;
  let lineEnd = text.indexOf("\n");
  for (const { kind, at, masked } of keys) {
    for (; lineEnd >= 0 && lineEnd < at; lineEnd = text.indexOf("\n", lineEnd + 1)) line++;
    const first = kinds.get(kind) ?? { kind, line, masked, count: 0 };
    kinds.set(kind, { ...first, count: first.count + 1 });
  }
  return [...kinds.values()];
}

function shapedKeys(text: string, { kind, starts, rest }: KeyShape): Key[] {
  return starts.flatMap((start) =>
    placesOf(text, start).flatMap((at) => {
      const found = matchAt(rest, text, at + start.length)?.[0];
      if (found === undefined || isMadeUp(found) || !isVaried(found)) return [];
      return [{ kind, at, masked: `${start}…` }];
    }),
  );
}

/** Where a start stands that is not the middle of something longer. */
function placesOf(text: string, start: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(start); at >= 0; at = text.indexOf(start, at + start.length)) {
    if (at === 0 || !/[\w-]/.test(text[at - 1]!)) places.push(at);
  }
  return places;
}

/** A line that begins a private key, with a key behind it: programs that read keys name the line alone. */
function privateKeys(text: string): Key[] {
  const begin = "-----BEGIN ";
  const keys: Key[] = [];
  for (let at = text.indexOf(begin); at >= 0; at = text.indexOf(begin, at + begin.length)) {
    const title = matchAt(PRIVATE_KEY, text, at + begin.length)?.[0];
    if (title === undefined) continue;
    const end = at + begin.length + title.length;
    const [near = ""] = text.slice(end, end + NEAR).split("-----", 1);
    if (!near.split(/[^A-Za-z0-9+/]/).some((part) => part.length >= 40 && isVaried(part))) continue;
    keys.push({ kind: "private key", at, masked: `${begin}${title}…` });
  }
  return keys;
}

/** Values that look random and belong to a name of secrets; not those that have a kind of their own already. */
function assignedSecrets(text: string, known: ReadonlySet<number>): Key[] {
  const keys: Key[] = [];
  for (const found of text.matchAll(ASSIGNMENT)) {
    const [whole, name = ""] = found;
    const from = found.index + whole.length;
    const quoted = matchAt(QUOTED, text, from)?.[2];
    const value = quoted ?? matchAt(BARE, text, from)?.[1];
    const at = quoted === undefined ? from : from + 1;
    if (value === undefined || known.has(at) || !looksRandom(value)) continue;
    if (HARMLESS_NAME.test(text.slice(Math.max(0, found.index - 16), found.index))) continue;
    const kind = /access/i.test(name) && value.length === 40 ? "AWS secret key" : "random-looking value";
    keys.push({ kind, at, masked: `${name}=…` });
  }
  return keys;
}

function matchAt(sticky: RegExp, text: string, at: number): RegExpExecArray | null {
  sticky.lastIndex = at;
  return sticky.exec(text);
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const HASH = /^(?:sha\d{1,3}|md5)[-:=]/i;

function looksRandom(value: string): boolean {
  if (isMadeUp(value) || UUID.test(value) || HASH.test(value)) return false;
  const digits = count(value, /\d/g);
  // Neither a number, nor a version or a date, nor a text without any digit, as most identifiers are.
  if (digits === 0 || count(value, /[A-Za-z]/g) < 4) return false;
  if (/^[0-9a-f]+$/i.test(value)) return value.length >= 32 && entropy(value) >= 3;
  return !consistsOfWords(value, digits) && entropy(value) >= 3.5;
}

/** Paths and identifiers are words with few digits; what is random has few letters of one case in a row. */
function consistsOfWords(value: string, digits: number): boolean {
  const inWords = value.match(/[A-Z]?[a-z]{3,}|[A-Z]{4,}/g)?.join("").length ?? 0;
  return inWords > value.length * 0.4 && digits < value.length * 0.15;
}

/** What people write where a key would stand; the last is the token that everybody explains tokens with. */
const MADE_UP =
  /example|change.?me|placeholder|your|dummy|sample|fake|redacted|insert|replace|x{4}|\*{3}|\.{3}|0{6}|123456789|abcdefgh|\benv(?:iron)?\.|\.eyJzdWIiOiIxMjM0NTY3ODkw/i;

function isMadeUp(value: string): boolean {
  return MADE_UP.test(value);
}

/** `aaaa…` is no key. */
function isVaried(value: string): boolean {
  return new Set(value.slice(0, 64)).size >= 8;
}

/** Bits a character, by how often each one occurs. */
function entropy(value: string): number {
  const times = new Map<string, number>();
  for (const character of value) times.set(character, (times.get(character) ?? 0) + 1);
  let bits = 0;
  for (const often of times.values()) bits -= (often / value.length) * Math.log2(often / value.length);
  return bits;
}

function count(value: string, pattern: RegExp): number {
  return value.match(pattern)?.length ?? 0;
}
