import { isNetworkRule } from "../../runtime/sandboxes/network.ts";
import { parsePostgresUrl, withoutPassword } from "../../runtime/store/postgres/place.ts";
import { parseAddress } from "../http/address.ts";

/** One setting of the configuration: what it means and takes, and its forms in a file, in text and in the server. */
export interface Setting<Value = unknown> {
  readonly description: string;
  /** "a duration such as 30s": completes "expected …". */
  readonly expects: string;
  /** As a file would have it; absent when it depends on other values. */
  readonly fallback?: unknown;
  /** It names a place on disk: in a file, a relative one starts at the directory of that file. */
  readonly isPath?: true;
  /** From what a file has to the server's value; undefined when it is none. */
  read(given: unknown): Value | undefined;
  /** What is wrong with a value that is none, where there is more to say than what is expected. */
  problem?(given: unknown): string | undefined;
  /** From the environment or a flag, where everything is text, to what a file would have. */
  fromText(text: string): unknown;
  /** From the server's value to what a file would have, for people: without what is secret in it. */
  write(value: Value): unknown;
}

export function duration(fallback: string, description: string): Setting<number> {
  const expects = "a duration such as 30s, 10m, 1h30m, 7d or 0";
  const read = (given: unknown) => (isTextOrNumber(given) ? parseDuration(given) : undefined);
  return { ...plain({ fallback, description, expects, read }), write: formatDuration };
}

export function size(fallback: string, description: string): Setting<number> {
  const expects = "a size such as 512MiB, 10GB or a number of bytes";
  const read = (given: unknown) => (isTextOrNumber(given) ? parseSize(given) : undefined);
  return { ...plain({ fallback, description, expects, read }), write: formatSize };
}

export function count(fallback: number, description: string): Setting<number> {
  const isCount = (given: unknown): given is number => Number.isSafeInteger(given) && (given as number) >= 0;
  const read = (given: unknown) => (isCount(given) ? given : undefined);
  const fromText = (text: string) => (/^\d{1,16}$/.test(text) ? Number(text) : text);
  return { ...plain({ fallback, description, expects: "a whole number, 0 or more", read }), fromText };
}

export function flag(fallback: boolean, description: string): Setting<boolean> {
  const read = (given: unknown) => (typeof given === "boolean" ? given : undefined);
  const fromText = (text: string) => (text === "true" ? true : text === "false" ? false : text);
  return { ...plain({ fallback, description, expects: "true or false", read }), fromText };
}

export function text(fallback: string, description: string): Setting<string> {
  return plain({ fallback, description, expects: "a text", read: (given) => (isLine(given) ? given : undefined) });
}

/** A place on disk, or "" for none. */
export function optionalPath(description: string): Setting<string> {
  return { ...text("", description), expects: "a path", isPath: true };
}

/** A place on disk whose default depends on other values or on who runs the server. */
export function derivedPath(description: string): Setting<string> {
  const read = (given: unknown) => (isLine(given) && given !== "" ? given : undefined);
  return { ...plain({ description, expects: "a path", read }), isPath: true };
}

/** The URL of a PostgreSQL database, or "" for none. It may hold a password, which is never shown. */
export function postgresUrl(description: string): Setting<string> {
  const faultOf = (given: unknown): string | undefined => {
    if (given === "") return undefined;
    try {
      parsePostgresUrl(String(given));
    } catch (error) {
      return (error as Error).message;
    }
  };
  const read = (given: unknown) => (isLine(given) && faultOf(given) === undefined ? given : undefined);
  const expects = "a URL such as postgres://user@host:5432/database";
  return {
    ...plain({ fallback: "", description, expects, read }),
    problem: (given) => `expected ${expects}: ${faultOf(given) ?? "it has more than one line"}`,
    write: withoutPassword,
  };
}

export function address(fallback: string, description: string): Setting<string> {
  const expects = "an address such as 127.0.0.1:9000, [::1]:9000, :9000 or unix:/run/agentfense.sock";
  const read = (given: unknown) => (typeof given === "string" && isAddress(given) ? given : undefined);
  return plain({ fallback, description, expects, read });
}

/** An address, or "" for none. */
export function optionalAddress(fallback: string, description: string): Setting<string> {
  const { expects, read, ...rest } = address(fallback, description);
  return { ...rest, expects: `${expects}, or "" for none`, read: (given) => (given === "" ? "" : read(given)) };
}

/** Without a fallback it depends on other values. */
export function choice<const Choice extends string>(
  choices: readonly Choice[],
  fallback: Choice | undefined,
  description: string,
): Setting<Choice> {
  const read = (given: unknown) => choices.find((each) => each === given);
  return plain({ fallback, description, expects: `one of ${quoted(choices)}`, read });
}

export function texts(fallback: readonly string[], description: string): Setting<string[]> {
  return list(fallback, description, "texts", (item) => (isLine(item) && item !== "" ? item : undefined));
}

/** Hosts as the lists of filtered networks have them. */
export function hosts(fallback: readonly string[], description: string): Setting<string[]> {
  return list(fallback, description, "hosts such as example.com, *.example.com or example.com:443", (item) =>
    isNetworkRule(item) ? item : undefined,
  );
}

/** One or more. Without a fallback it depends on other values. */
export function choices<const Choice extends string>(
  allowed: readonly Choice[],
  fallback: readonly Choice[] | undefined,
  description: string,
): Setting<Choice[]> {
  const item = (given: unknown) => allowed.find((each) => each === given);
  const any = list(fallback, description, `one or more of ${quoted(allowed)}`, item);
  return { ...any, read: (given) => (Array.isArray(given) && given.length === 0 ? undefined : any.read(given)) };
}

/** "127.0.0.1:9000", "localhost:9000", "[::1]:9000", ":9000" for every interface, or "unix:/run/agentfense.sock". */
export function isAddress(given: string): boolean {
  try {
    parseAddress(given);
    return true;
  } catch {
    return false;
  }
}

type Description<Value> = Pick<Setting<Value>, "description" | "expects" | "read"> & { readonly fallback?: unknown };

/** What is the same in a file, in text and in the server. */
function plain<Value>({ fallback, ...described }: Description<Value>): Setting<Value> {
  const forms = { fromText: (given: string) => given, write: (value: Value) => value };
  return { ...described, ...forms, ...(fallback === undefined ? {} : { fallback }) };
}

function list<Item>(
  fallback: readonly Item[] | undefined,
  description: string,
  of: string,
  item: (given: unknown) => Item | undefined,
): Setting<Item[]> {
  const read = (given: unknown) => {
    const items = Array.isArray(given) ? given.map(item) : [undefined];
    return items.includes(undefined) ? undefined : (items as Item[]);
  };
  const fromText = (given: string) => (given === "" ? [] : given.split(",").map((each) => each.trim()));
  return { ...plain({ fallback, description, expects: `a list of ${of}`, read }), fromText };
}

function isTextOrNumber(given: unknown): given is string | number {
  return typeof given === "string" || typeof given === "number";
}

/** One line: no value of ours has controls in it, and what is printed or passed on must not either. */
function isLine(given: unknown): given is string {
  return typeof given === "string" && !/[\u0000-\u001f\u007f]/.test(given);
}

function quoted(allowed: readonly string[]): string {
  return allowed.map((each) => (each === "" ? '""' : each)).join(", ");
}

// Times and sizes as people write them. What is printed by the format functions is read back as the same number.

const TIME_UNITS: readonly (readonly [unit: string, milliseconds: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
];

const TIME_PART = /(\d+(?:\.\d+)?)(ms|d|h|m|s)/g;
const WHOLE_TIME = /^(?:\d+(?:\.\d+)?(?:ms|d|h|m|s))+$/;

/** "30s", "1h30m", "500ms", "7d" or 0, in milliseconds. A number without a unit is refused: nobody could tell which. */
export function parseDuration(value: string | number): number | undefined {
  if (value === 0 || value === "0") return 0;
  if (typeof value === "number" || !WHOLE_TIME.test(value)) return undefined;
  const sizes = new Map(TIME_UNITS);
  const total = [...value.matchAll(TIME_PART)].reduce(
    (sum, [, digits, unit]) => sum + Number(digits) * sizes.get(unit!)!,
    0,
  );
  const milliseconds = Math.ceil(total);
  return Number.isSafeInteger(milliseconds) ? milliseconds : undefined;
}

export function formatDuration(milliseconds: number): string {
  if (milliseconds === 0) return "0";
  let rest = milliseconds;
  let text = "";
  for (const [unit, size] of TIME_UNITS) {
    // A day is 24h to everybody who writes one.
    if (unit === "d" && milliseconds < 2 * size) continue;
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text;
}

const SIZE_UNITS: readonly string[] = ["", "k", "m", "g", "t"];

/** "512MiB", "10GB", "64k" or plain bytes. All units are powers of 1024, as in the options of the command line. */
export function parseSize(value: string | number): number | undefined {
  const [, digits, unit] = /^(\d+(?:\.\d+)?) ?([kmgt]?)(?:i?b)?$/i.exec(String(value)) ?? [];
  if (digits === undefined || unit === undefined) return undefined;
  const power = SIZE_UNITS.indexOf(unit.toLowerCase());
  const bytes = Math.floor(Number(digits) * 1024 ** power);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

export function formatSize(bytes: number): string {
  for (let power = SIZE_UNITS.length - 1; power > 0; power -= 1) {
    const unit = 1024 ** power;
    if (bytes >= unit && bytes % unit === 0) return `${bytes / unit}${SIZE_UNITS[power]!.toUpperCase()}iB`;
  }
  return String(bytes);
}
