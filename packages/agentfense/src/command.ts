import { UsageError } from "./command-failure.ts";
import { type Option, readOptions, type ValuesOf } from "./option.ts";
import { printable } from "./terminal.ts";

/** One command of the command line, as a row of its family's table. */
export interface Command extends About {
  /** Gives the exit code: 0: done; 1: it did not work, or the answer is no; or that of a command it ran for the user. */
  run(args: readonly string[], families: Families): Promise<number>;
}

/** The commands that begin with one word: what they are about, and their table, which loads when one of them is called. */
export interface Family {
  readonly about: string;
  readonly load: () => Promise<readonly Command[]>;
}

/** All that there are, by their words. */
export type Families = Readonly<Record<string, Family>>;

/** Every command there is. */
export async function allCommands(families: Families): Promise<Command[]> {
  return (await Promise.all(Object.values(families).map(({ load }) => load()))).flat();
}

/** What help and completion tell of a command. */
interface About {
  /** "policy tree" */
  readonly name: string;
  /** For the list of its family; a command of one word has its line among the families. */
  readonly summary?: string;
  /** What stands behind the name in the help, where that is not all there is to say; a line for each form. */
  readonly usage?: string | readonly string[];
  /** What it does, in paragraphs. */
  readonly about: string;
  /** The options by the titles under which the help has them. */
  readonly options: OptionGroups;
  /** Its arguments: "DIR", "[DIR]" for one that may be left out, "PATH…" or "[PATH…]" for any number at the end. */
  readonly takes: readonly string[];
  /** The same in words, for whoever gives others. */
  readonly wants?: string;
  /** What its arguments are, as far as a shell can help. */
  readonly completes?: "directory" | "file" | readonly string[];
  /** A command for somebody else, which must be there unless it is in brackets: "-- COMMAND [ARGUMENT…]". */
  readonly passes?: string;
  /** What stands behind the options. */
  readonly notes?: string;
  /** It has something to clean up when nobody reads its output any more, and listens for that itself. */
  readonly handlesClosedOutput?: true;
}

export type OptionGroups = Readonly<Record<string, readonly Option[]>>;

/** All options of all groups. */
export type OptionsOf<Groups extends OptionGroups> = readonly Groups[keyof Groups][number][];

/** What was asked for. */
export interface Call<Options extends readonly Option[], Takes extends readonly string[]> {
  readonly values: ValuesOf<Options>;
  /** One for each of `takes`, without the last where there can be any number of it. */
  readonly given: Given<WithoutRest<Takes>>;
  /** Those. */
  readonly more: readonly string[];
  /** What follows --. */
  readonly command: readonly string[];
  readonly families: Families;
}

type WithoutRest<Takes extends readonly string[]> = Takes extends readonly [
  ...infer Before extends readonly string[],
  `${string}…${string}`,
]
  ? Before
  : Takes;

type Given<Takes extends readonly string[]> = {
  readonly [Index in keyof Takes]: Takes[Index] extends `[${string}` ? string | undefined : string;
};

type Definition<Groups extends OptionGroups, Takes extends readonly string[]> = Omit<About, "options" | "takes"> & {
  readonly options?: Groups;
  readonly takes?: Takes;
};

export function command<
  const Groups extends OptionGroups = Record<never, never>,
  const Takes extends readonly string[] = [],
>(
  definition: Definition<Groups, Takes> & {
    /** What is not given is 0. */
    run(call: Call<OptionsOf<Groups>, Takes>): Promise<number | undefined> | Promise<void>;
  },
): Command {
  const { run, options = {}, takes = [], ...about } = definition;
  const row: About = { ...about, options, takes };
  return {
    ...row,
    run: async (args, families) => {
      const call = { ...readCall(row, args), families };
      return (await run(call as unknown as Call<OptionsOf<Groups>, Takes>)) ?? 0;
    },
  };
}

/** What a command line asks of a command. */
export function readCall(row: Pick<About, "name" | "options" | "takes" | "wants" | "passes">, args: readonly string[]) {
  const { own, command: passed } = row.passes === undefined ? { own: args, command: [] } : splitCommand(row, args);
  const { values, positionals } = readOptions(own, Object.values(row.options).flat());
  const singles = row.takes.filter((name) => !name.includes("…"));
  const least = row.takes.filter((name) => !name.startsWith("[")).length;
  const most = singles.length === row.takes.length ? singles.length : Number.POSITIVE_INFINITY;
  if (positionals.length < least || positionals.length > most) {
    const { name, takes, wants = takes.join(" ") || "no arguments" } = row;
    throw new UsageError(`${name} takes ${wants}, not ${positionals.map(printable).join(" ") || "nothing"}`);
  }
  return {
    values,
    given: positionals.slice(0, singles.length),
    more: positionals.slice(singles.length),
    command: passed,
  };
}

function splitCommand({ name, takes, passes }: Pick<About, "name" | "takes" | "passes">, args: readonly string[]) {
  const separator = args.indexOf("--");
  if (separator < 0) {
    if (passes?.startsWith("[")) return { own: args, command: [] };
    const example = [name, ...takes.filter((word) => !word.startsWith("["))].join(" ");
    throw new UsageError(`${name} takes a command after --, as in: agentfense ${example} -- npm test`);
  }
  const passed = args.slice(separator + 1);
  if (!passes?.startsWith("[") && !passed[0]) throw new UsageError("there is no command after --");
  return { own: args.slice(0, separator), command: passed };
}
