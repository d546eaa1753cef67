import { printable, printableSentence } from "../terminal.ts";

const LEVELS = ["debug", "info", "warn", "error", "fatal"] as const;

export type LogLevel = (typeof LEVELS)[number];

/** Writes entries of at least a level, one a line: JSON, or text in which no entry can move the cursor or fake a second. */
export function createLog(options: {
  readonly level: LogLevel;
  readonly format: "text" | "json";
  readonly write: (line: string) => void;
  readonly clock?: () => Date;
}): (entry: object) => void {
  const { level: least, format, write, clock = () => new Date() } = options;
  return (entry) => {
    const { level = "info", time: given, message, msg, ...facts } = entry as Readonly<Record<string, unknown>>;
    const known = isLevel(level) ? level : "info";
    if (LEVELS.indexOf(known) < LEVELS.indexOf(least)) return;
    const text = String(message ?? msg ?? "");
    const time = typeof given === "string" ? given : clock().toISOString();
    write(format === "json" ? jsonLine(known, time, text, facts) : textLine(known, time, text, facts));
  };
}

type Facts = Readonly<Record<string, unknown>>;

function jsonLine(level: LogLevel, time: string, msg: string, facts: Facts): string {
  return `${JSON.stringify({ level, time, msg, ...facts }, plainly).replace(LEFT_BY_JSON, escaped)}\n`;
}

/** What JSON leaves as it is, and a terminal or an editor does not: DEL, C1, other ends of line, what turns text around. */
const LEFT_BY_JSON = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function textLine(level: LogLevel, time: string, message: string, facts: Facts): string {
  const words = [time, level.toUpperCase().padEnd(5), printable(message), ...Object.entries(facts).flatMap(fact)];
  return `${words.join(" ")}\n`;
}

/** `name=value`, quoted when it is more than one word. */
function fact([name, value]: readonly [string, unknown]): string[] {
  if (value === undefined || value === "") return [];
  const text = typeof value === "string" ? value : (JSON.stringify(value, plainly) ?? String(value));
  // JSON escapes the controls that have short names, and quotes; the rest is ours to escape.
  const shown = /^[^\s"=\\]+$/.test(text) ? text : JSON.stringify(text);
  return [`${printable(name)}=${printableSentence(shown)}`];
}

/** Errors and large numbers, which JSON has no words for. */
function plainly(_name: string, value: unknown): unknown {
  if (value instanceof Error) return value.stack ?? value.message;
  return typeof value === "bigint" ? String(value) : value;
}

function isLevel(value: unknown): value is LogLevel {
  return (LEVELS as readonly unknown[]).includes(value);
}
