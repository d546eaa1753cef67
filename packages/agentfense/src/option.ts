import { type ParseArgsConfig, parseArgs } from "node:util";
import { UsageError } from "./command-failure.ts";
import { printable } from "./terminal.ts";

/** An option of the command line. Parsing, help and completion are all made from this one declaration. */
export interface Option {
  /** Without dashes. */
  readonly name: string;
  /** One letter that means the same. */
  readonly short?: string;
  /** What stands for the value in the help: "FILE". Absent: a switch. */
  readonly value?: string;
  /** For the help; every line but the first stands below it as it is. */
  readonly about: string;
  /** What a shell can help with. */
  readonly kind?: "directory" | "file";
  /** The values that there are. Without `parse` no other is taken. */
  readonly words?: readonly string[];
  /** What the option means without a value; one that is given follows a "=", or nobody could tell it from an argument. */
  readonly alone?: string;
  /** A switch that is on, and is said with --no- in front. */
  readonly isOn?: true;
  readonly isRepeated?: true;
  /** What the value means, or a usage error; it is told the option as the user writes it. */
  readonly parse?: (text: string, option: string) => unknown;
}

/** Every command has it. */
export const HELP: Option = { name: "help", short: "h", about: "this text" };

export function option<const Declared extends Option>(declared: Declared): Declared {
  return declared;
}

type OneValueOf<Each> = Each extends { readonly parse: (text: string, option: string) => infer Value }
  ? Value
  : Each extends { readonly words: readonly (infer Word)[] }
    ? Word
    : string;

type ValueOf<Each> = Each extends { readonly value: string }
  ? Each extends { readonly isRepeated: true }
    ? readonly OneValueOf<Each>[]
    : OneValueOf<Each>
  : boolean;

/** What a command line says for these options, by their names. */
export type ValuesOf<Options extends readonly Option[]> = {
  readonly [Each in Options[number] as Each["name"]]?: ValueOf<Each> | undefined;
};

/** The option as users write it. */
export function spelled({ name, isOn }: Option): string {
  return `--${isOn ? "no-" : ""}${name}`;
}

/** The values of the options among the arguments, and the arguments that are none. Everything else is a usage error. */
export function readOptions(args: readonly string[], options: readonly Option[]) {
  const config = Object.fromEntries(options.map((each) => [each.name, configOf(each)]));
  const { values: texts, positionals } = parsed(withValues(args, options), config);
  const values: Record<string, unknown> = {};
  for (const each of options) {
    const said = texts[each.name];
    if (said === undefined) continue;
    const meant = [said].flat().map((text) => (typeof text === "string" ? meaning(each, text) : text));
    values[each.name] = each.isRepeated ? meant : meant[0];
  }
  return { values, positionals };
}

function configOf({ value, short, isRepeated }: Option) {
  const type = value === undefined ? ("boolean" as const) : ("string" as const);
  return { type, multiple: isRepeated === true, ...(short !== undefined && { short }) };
}

function parsed(args: readonly string[], options: NonNullable<ParseArgsConfig["options"]>) {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: true, allowNegative: true });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const [, unvalued] = /^Option '(?:-\w, )?(--[^' ]+).*' argument (?:is ambiguous|missing)/.exec(error.message) ?? [];
    if (unvalued !== undefined) {
      throw new UsageError(`${unvalued} takes a value; one that begins with a dash is written ${unvalued}=-…`);
    }
    // Node adds a second sentence about positionals that begin with a dash; the first says what is wrong.
    const message = printable(error.message.split(". To specify")[0]!);
    const [, given] = /^Unknown option '(--[^'=]+)/.exec(error.message) ?? [];
    const known = Object.entries(options).flatMap(([name, { type }]) =>
      type === "boolean" ? [`--${name}`, `--no-${name}`] : [`--${name}`],
    );
    throw new UsageError(message, { slip: given === undefined ? undefined : { given, known: [...known, "--help"] } });
  }
}

/** The same arguments with every value that was left out filled in, for a parser that knows no such options. */
function withValues(args: readonly string[], options: readonly Option[]): string[] {
  const end = args.includes("--") ? args.indexOf("--") : args.length;
  return args.map((argument, index) => {
    const found = options.find(({ name, alone }) => alone !== undefined && argument === `--${name}`);
    if (found === undefined || index >= end) return argument;
    const next = args[index + 1];
    if (next !== undefined && found.words?.includes(next)) throw new UsageError(`write ${argument}=${next}`);
    return `${argument}=${found.alone}`;
  });
}

function meaning(each: Option, text: string): unknown {
  if (each.parse !== undefined) return each.parse(text, spelled(each));
  if (each.words === undefined || each.words.includes(text)) return text;
  throw new UsageError(`${spelled(each)} is ${oneOf(each.words)}, not ${JSON.stringify(text)}`, {
    slip: { given: text, known: each.words },
  });
}

function oneOf(words: readonly string[]): string {
  return `one of ${words.join(", ")}`;
}
