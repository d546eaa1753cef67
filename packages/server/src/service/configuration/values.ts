import { isNetworkRule } from "../../runtime/sandboxes/network.ts";
import { parseAddress } from "../http/address.ts";
import { formatDuration, formatSize, parseDuration, parseSize } from "./units.ts";

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
  /** From the environment or a flag, where everything is text, to what a file would have. */
  fromText(text: string): unknown;
  /** From the server's value to what a file would have. */
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
