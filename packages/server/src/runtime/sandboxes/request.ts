import { invalid } from "./errors.ts";

// What callers may send, by shape. The isolation layer checks again what it uses.

const LARGEST = { labels: 64, labelName: 128, labelValue: 1024, variables: 256, environmentBytes: 64 * 1024 };
/** The kernel takes no single argument or variable longer than this (MAX_ARG_STRLEN, with its NUL). */
const LONGEST_STRING_BYTES = 128 * 1024 - 1;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function checkLabels(labels: Readonly<Record<string, string>>): void {
  const entries = Object.entries(labels);
  if (entries.length > LARGEST.labels) throw invalid(`a sandbox has at most ${LARGEST.labels} labels`);
  for (const [name, value] of entries) {
    if (name === "") throw invalid("a label needs a name");
    if (Buffer.byteLength(name) > LARGEST.labelName) {
      throw invalid(`the name of a label has at most ${LARGEST.labelName} bytes`);
    }
    if (Buffer.byteLength(value) > LARGEST.labelValue) {
      throw invalid(`the value of the label ${JSON.stringify(name)} has more than ${LARGEST.labelValue} bytes`);
    }
    if (name.includes("\0") || value.includes("\0")) {
      throw invalid(`the label ${JSON.stringify(name)} contains a NUL character`);
    }
  }
}

export function checkEnvironment(env: Readonly<Record<string, string>>): void {
  const entries = Object.entries(env);
  if (entries.length > LARGEST.variables) throw invalid(`env has at most ${LARGEST.variables} variables`);
  let bytes = 0;
  for (const [name, value] of entries) {
    if (!VARIABLE_NAME.test(name)) {
      throw invalid(`${JSON.stringify(name.slice(0, 80))} is not a name for an environment variable`);
    }
    if (value.includes("\0")) throw invalid(`the value of ${name} contains a NUL character`);
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  }
  if (bytes > LARGEST.environmentBytes) throw invalid(`env is larger than ${LARGEST.environmentBytes} bytes`);
}

export function checkCommand(command: string | readonly string[]): void {
  const words = typeof command === "string" ? [command] : command;
  if (words.length === 0 || words[0]!.trim() === "") throw invalid("command is required");
  // A shell finds the program, and would take such a name for an option.
  if (typeof command !== "string" && words[0]!.startsWith("-")) {
    throw invalid("argv[0] begins with a dash", "call the program by its path, as in ./-name");
  }
  for (const word of words) {
    if (word.includes("\0")) throw invalid("command contains a NUL character");
    if (Buffer.byteLength(word) > LONGEST_STRING_BYTES) {
      throw invalid(`command is longer than ${LONGEST_STRING_BYTES} bytes`, "pass it on stdin or in a file");
    }
  }
}

export function checkWorkdir(workdir: string): void {
  if (workdir.includes("\0")) throw invalid("workdir contains a NUL character");
  if (Buffer.byteLength(workdir) > 4095) throw invalid("workdir is longer than 4095 bytes");
}

/** Absent, 0, less and NaN mean the default; the isolation layer bounds the rest. */
export function timeoutOf(timeoutMs: number | undefined): { readonly timeoutMs?: number } {
  return timeoutMs !== undefined && timeoutMs > 0 ? { timeoutMs } : {};
}
