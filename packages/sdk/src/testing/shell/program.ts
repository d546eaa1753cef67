import type { Stdio } from "../commands/stdio.ts";
import { readAll } from "../commands/stdio.ts";
import { FileFault } from "../files/file-fault.ts";
import type { MountedFiles } from "./mounted-files.ts";
import type { ShellState } from "./state.ts";

/** One program at work. */
export interface ProgramRun {
  readonly name: string;
  readonly args: readonly string[];
  readonly stdio: Stdio;
  readonly files: MountedFiles;
  readonly state: ShellState;
  /** Runs a script in a shell of its own. */
  readonly runScript: (script: string) => Promise<number>;
  /** "/bin/bash: line 1: ", as the shell's own complaints begin. */
  readonly shellPrefix: string;
}

/** Gives the exit code. */
export type Program = (run: ProgramRun) => Promise<number>;

/** Ends the shell: what `exit` does. */
export class ExitRequest extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`exit ${exitCode}`);
    this.name = "ExitRequest";
    this.exitCode = exitCode;
  }
}

/** The exit code, also of a shell that `exit` ended. */
export async function untilExit(work: Promise<number>): Promise<number> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ExitRequest) return error.exitCode;
    throw error;
  }
}

/** A program that gives up, saying why. */
export class Complaint extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = "Complaint";
    this.exitCode = exitCode;
  }
}

export async function print({ stdio }: Pick<ProgramRun, "stdio">, text: string): Promise<void> {
  await stdio.stdout.write(Buffer.from(text));
}

/** A line on stderr, after the program's name. */
export async function complain({ name, stdio }: ProgramRun, message: string): Promise<void> {
  await stdio.stderr.write(Buffer.from(`${name}: ${message}\n`));
}

export function pathOf({ files, state }: ProgramRun, path: string): string {
  if (path === "") throw new FileFault("ENOENT");
  return files.resolve(state.cwd, path);
}

/** Does the work for each; a refusal is printed by `wording` and counts as a failure. */
export async function each<Item>(
  run: ProgramRun,
  items: readonly Item[],
  wording: (item: Item, reason: string) => string,
  work: (item: Item) => Promise<void> | void,
): Promise<boolean> {
  let isFine = true;
  for (const item of items) {
    try {
      await work(item);
    } catch (error) {
      if (!(error instanceof FileFault)) throw error;
      isFine = false;
      await complain(run, wording(item, error.message));
    }
  }
  return isFine;
}

export interface ParsedOptions {
  readonly flags: ReadonlySet<string>;
  /** Of options that take one, by their letter. */
  readonly values: ReadonlyMap<string, string>;
  readonly operands: readonly string[];
}

/** Letters after a dash; one of `withValue` takes the rest of its word, or the next word. */
export function parseOptions(
  args: readonly string[],
  { letters, withValue = "" }: { readonly letters: string; readonly withValue?: string },
): ParsedOptions {
  const flags = new Set<string>();
  const values = new Map<string, string>();
  const operands: string[] = [];
  const left = [...args];
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    if (word === "--") {
      operands.push(...left);
      break;
    }
    if (!word.startsWith("-") || word === "-") {
      operands.push(word);
      continue;
    }
    for (let at = 1; at < word.length; at++) {
      const letter = word[at]!;
      if (withValue.includes(letter)) {
        const value = word.slice(at + 1) || left.shift();
        if (value === undefined) throw new Complaint(`option requires an argument -- '${letter}'`, 2);
        values.set(letter, value);
        break;
      }
      if (!letters.includes(letter)) throw new Complaint(`invalid option -- '${letter}'`, 2);
      flags.add(letter);
    }
  }
  return { flags, values, operands };
}

// Text is taken byte by byte (latin1), so that what is not UTF-8 goes through unchanged.

/**
 * The inputs of a program: the files it names, or its standard input. Those that cannot be read are complained about.
 */
export async function readInputs(
  run: ProgramRun,
  operands: readonly string[],
  wording: (path: string, reason: string) => string,
): Promise<{ readonly inputs: readonly { readonly name: string; readonly text: string }[]; readonly isFine: boolean }> {
  const inputs: { name: string; text: string }[] = [];
  const isFine = await each(run, operands.length === 0 ? ["-"] : operands, wording, async (path) => {
    const content = path === "-" ? await readAll(run.stdio.stdin) : run.files.read(pathOf(run, path));
    inputs.push({ name: path, text: Buffer.from(content).toString("latin1") });
  });
  return { inputs, isFine };
}

export async function printBytes({ stdio }: ProgramRun, text: string): Promise<void> {
  await stdio.stdout.write(Buffer.from(text, "latin1"));
}

/** Lines without their ends. */
export function linesOf(text: string): string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}

/** As bytes that are compared with bytes. */
export function asBytes(text: string): string {
  return Buffer.from(text).toString("latin1");
}
