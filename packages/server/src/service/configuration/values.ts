import { z } from "zod";
import { isAddress } from "./address.ts";
import { formatDuration, formatSize, parseDuration, parseSize } from "./units.ts";

// The kinds of values a configuration has. Each is a zod type that says in words what it takes, how a value is read from
// text that has no types (the environment, a flag), and how it is written.

interface ValueKind {
  /** "a duration such as 30s": completes "expected …". */
  readonly expects: string;
  /** From the environment or a flag to what a file would have. */
  fromText(text: string): unknown;
  /** From the parsed value to what a file would have. */
  write(value: unknown): unknown;
  /** As a file would have it; absent when it depends on other values. */
  readonly fallback?: unknown;
  /** It names a place on disk: in a file, a relative one starts at the directory of that file. */
  readonly isPath?: true;
}

const KINDS = new WeakMap<object, ValueKind>();

/** What is known about the value of a key; undefined for a section. */
export function kindOf(schema: object): ValueKind | undefined {
  return KINDS.get(schema);
}

export function duration(fallback: string, description: string) {
  const type = z.union([z.string(), z.number()]).transform((value, context) => {
    return parseDuration(value) ?? refuse(context);
  });
  return remember(type.prefault(fallback).describe(description), {
    ...plain(fallback, "a duration such as 30s, 10m, 1h30m, 7d or 0"),
    write: (value) => formatDuration(value as number),
  });
}

export function size(fallback: string, description: string) {
  const type = z.union([z.string(), z.number()]).transform((value, context) => parseSize(value) ?? refuse(context));
  return remember(type.prefault(fallback).describe(description), {
    ...plain(fallback, "a size such as 512MiB, 10GB or a number of bytes"),
    write: (value) => formatSize(value as number),
  });
}

export function count(fallback: number, description: string) {
  const type = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
  return remember(type.default(fallback).describe(description), {
    ...plain(fallback, "a whole number, 0 or more"),
    fromText: (text) => (/^\d{1,16}$/.test(text) ? Number(text) : text),
  });
}

export function flag(fallback: boolean, description: string) {
  return remember(z.boolean().default(fallback).describe(description), {
    ...plain(fallback, "true or false"),
    fromText: (text) => (text === "true" ? true : text === "false" ? false : text),
  });
}

export function text(fallback: string, description: string) {
  return remember(line().default(fallback).describe(description), plain(fallback, "a text"));
}

/** A place on disk, or "" for none. */
export function optionalPath(description: string) {
  return remember(line().default("").describe(description), { ...plain("", "a path"), isPath: true });
}

/** A place on disk whose default depends on other values or on who runs the server. */
export function derivedPath(description: string) {
  return remember(line().min(1).describe(description), { ...plain(undefined, "a path"), isPath: true });
}

export function address(fallback: string, description: string, { optional }: { readonly optional: boolean }) {
  const type = z.string().refine((value) => (optional && value === "") || isAddress(value));
  const forms = "an address such as 127.0.0.1:9000, [::1]:9000, :9000 or unix:/run/agentfense.sock";
  return remember(type.default(fallback).describe(description), {
    ...plain(fallback, optional ? `${forms}, or "" for none` : forms),
  });
}

export function choice<const Choices extends readonly [string, ...string[]]>(
  choices: Choices,
  fallback: Choices[number],
  description: string,
) {
  return remember(
    z
      .enum(choices)
      .default(() => fallback as never)
      .describe(description),
    plain(fallback, oneOf(choices)),
  );
}

export function derivedChoice<const Choices extends readonly [string, ...string[]]>(
  choices: Choices,
  description: string,
) {
  return remember(z.enum(choices).describe(description), plain(undefined, oneOf(choices)));
}

export function texts(fallback: readonly string[], description: string) {
  return remember(
    z
      .array(line().min(1))
      .default([...fallback])
      .describe(description),
    list(fallback, "texts"),
  );
}

export function choices<const Choices extends readonly [string, ...string[]]>(
  allowed: Choices,
  fallback: readonly Choices[number][],
  description: string,
) {
  const type = z
    .array(z.enum(allowed))
    .min(1)
    .default(() => [...fallback] as never);
  return remember(type.describe(description), list(fallback, `one or more of ${quoted(allowed)}`));
}

export function derivedChoices<const Choices extends readonly [string, ...string[]]>(
  allowed: Choices,
  description: string,
) {
  const type = z.array(z.enum(allowed)).min(1);
  return remember(type.describe(description), list(undefined, `one or more of ${quoted(allowed)}`));
}

/** One line: no value of ours has controls in it, and what is printed or passed on must not either. */
function line() {
  return z.string().refine((value) => !/[\u0000-\u001f\u007f]/.test(value));
}

function plain(fallback: unknown, expects: string): ValueKind {
  return {
    expects,
    fromText: (given) => given,
    write: (value) => value,
    ...(fallback === undefined ? {} : { fallback }),
  };
}

function list(fallback: readonly string[] | undefined, of: string): ValueKind {
  const split = (given: string): readonly string[] => given.split(",").map((item) => item.trim());
  return { ...plain(fallback, `a list of ${of}`), fromText: (given) => (given === "" ? [] : split(given)) };
}

function remember<Type extends object>(type: Type, kind: ValueKind): Type {
  KINDS.set(type, kind);
  return type;
}

function refuse(context: z.RefinementCtx): never {
  context.addIssue({ code: "custom" });
  return z.NEVER;
}

function oneOf(allowed: readonly string[]): string {
  return `one of ${quoted(allowed)}`;
}

function quoted(allowed: readonly string[]): string {
  return allowed.map((each) => (each === "" ? '""' : each)).join(", ");
}
