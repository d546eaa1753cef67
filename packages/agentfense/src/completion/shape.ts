/** What a shell has to know of a command. It is read from the command's help, so that help is where it is written. */
export interface CommandShape {
  /** "policy tree" */
  readonly name: string;
  readonly summary: string;
  readonly options: readonly OptionShape[];
  /** What its arguments are, as far as a shell can help with them. */
  readonly takes: ValueKind;
  /** Its argument is one of these. */
  readonly words?: readonly string[];
}

export interface OptionShape {
  /** "--preset", "-h" */
  readonly name: string;
  readonly about: string;
  /** Absent: it is a switch. */
  readonly value?: {
    /** "NAME" */
    readonly name: string;
    readonly kind: ValueKind;
    /** It may be left out, and if not it follows a "=". */
    readonly optional: boolean;
  };
}

export type ValueKind = "directory" | "file" | "other";

/** "  -h, --help   this text", "  --rules FILE   a list", "  --network[=MODE]   none or …": two blanks end the option. */
const OPTION_LINE = /^ {2}(?:(-\w), )?(--[\w-]+)(?:(\[=)?[ =]?([A-Z][A-Z:=]*)\]?)? {1,}(\S.*)$/;

/** The shape of a command that explains itself with this help. */
export function shapeOf(name: string, summary: string, help: string): CommandShape {
  const options = help.split("\n").flatMap(optionsIn);
  const usage = argumentsIn(name, help);
  const words = /(?:^| )([a-z]+(?:\|[a-z]+)+)/.exec(usage)?.[1]?.split("|");
  return { name, summary, options: withoutRepeats(options), takes: kindOfArguments(usage), ...(words && { words }) };
}

function optionsIn(line: string): OptionShape[] {
  const [, short, long, optional, value, about = ""] = OPTION_LINE.exec(line) ?? [];
  if (long === undefined) return [];
  const shape = {
    about: about.split(/[;:(]| \(/)[0]!.trim(),
    ...(value !== undefined && { value: { name: value, kind: kindOf(value), optional: optional !== undefined } }),
  };
  return [...(short === undefined ? [] : [{ name: short, ...shape }]), { name: long, ...shape }];
}

function withoutRepeats(options: readonly OptionShape[]): OptionShape[] {
  return options.filter(({ name }, index) => options.findIndex((other) => other.name === name) === index);
}

/** Behind "Usage: agentfense policy tree [OPTIONS] ": what it takes, up to a command of somebody else's. */
function argumentsIn(name: string, help: string): string {
  const [, rest = ""] = /^Usage: agentfense (.*)$/m.exec(help) ?? [];
  return rest
    .slice(name.length)
    .split(" -- ")[0]!
    .replaceAll(/--\w+ [A-Z]+/g, "");
}

/** A PATH stands for a file of this machine only below a DIR of it. */
function kindOfArguments(usage: string): ValueKind {
  if (/\b(DIR|MOUNTPOINT)\b/.test(usage)) return /\bPATH/.test(usage) ? "file" : "directory";
  return /\bFILE\b/.test(usage) ? "file" : "other";
}

function kindOf(value: string): ValueKind {
  if (value === "DIR" || value === "DELTA") return "directory";
  return value === "FILE" || value === "PATH" ? "file" : "other";
}
