import { setImmediate } from "node:timers/promises";
import { BrokenPipe, Killed } from "../commands/channel.ts";
import { BytePipe, type ByteSink, fixedSource, type Stdio } from "../commands/stdio.ts";
import { FileFault } from "../files/file-fault.ts";
import { expandPattern } from "./glob.ts";
import type { MountedFiles } from "./mounted-files.ts";
import { parse, type SimpleCommand, type Step } from "./parse.ts";
import { Complaint, type Program, untilExit } from "./program.ts";
import { FILE_PROGRAMS } from "./programs/files.ts";
import { grep } from "./programs/grep.ts";
import { ls } from "./programs/ls.ts";
import { SHELL_BUILTINS } from "./programs/shell-builtins.ts";
import { test } from "./programs/test.ts";
import { TEXT_PROGRAMS } from "./programs/text.ts";
import type { ShellState } from "./state.ts";
import { ShellSyntaxError } from "./tokenise.ts";

const PROGRAMS: ReadonlyMap<string, Program> = new Map<string, Program>([
  ...Object.entries(SHELL_BUILTINS),
  ...Object.entries(TEXT_PROGRAMS),
  ...Object.entries(FILE_PROGRAMS),
  ["grep", grep],
  ["ls", ls],
  ["test", test],
  ["[", test],
]);

/** Programs that speak as a part of the shell. */
const OF_THE_SHELL: ReadonlySet<string> = new Set(["export", "exit", "test", "[", "printf"]);

export interface ShellParts {
  readonly files: MountedFiles;
  /** What a test has prepared for a single command of a line; undefined: nothing. */
  readonly prepared: (argv: readonly string[], state: ShellState) => ((stdio: Stdio) => Promise<number>) | undefined;
}

/**
 * A little shell over files in memory, so that simple commands of an agent mean what they say: lists with `;`, `&&`,
 * `||`, pipes, redirections, quotes, variables, patterns for files and comments. Anything else it refuses rather than
 * guesses.
 */
export class Shell {
  readonly #parts: ShellParts;

  constructor(parts: ShellParts) {
    this.#parts = parts;
  }

  /** Gives the exit code of the last command. `exit` is thrown, as an ExitRequest. */
  async run(script: string, state: ShellState, stdio: Stdio): Promise<number> {
    let steps: Step[];
    try {
      steps = parse(script);
    } catch (error) {
      if (!(error instanceof ShellSyntaxError)) throw error;
      await stdio.stderr.write(Buffer.from(`${prefixOf(error.line)}${error.message}\n`));
      state.status = 2;
      return 2;
    }
    for (const { when, pipeline } of steps) {
      if (when !== "always" && (when === "after success") !== (state.status === 0)) continue;
      state.status = await this.#pipeline(pipeline, state, stdio);
    }
    return state.status;
  }

  /** A program without a shell around it. */
  async runProgram(argv: readonly string[], state: ShellState, stdio: Stdio): Promise<number> {
    return await this.#program(argv, state, stdio, 1);
  }

  async #pipeline(pipeline: readonly SimpleCommand[], state: ShellState, stdio: Stdio): Promise<number> {
    const [only] = pipeline;
    if (pipeline.length === 1 && only !== undefined) return await this.#command(only, state, stdio);
    const pipes = pipeline.slice(1).map(() => new BytePipe(stdio.signal));
    const codes = await Promise.all(
      pipeline.map(async (command, at) => {
        const [from, to] = [pipes[at - 1], pipes[at]];
        const own = { ...stdio, stdin: from ?? stdio.stdin, stdout: to ?? stdio.stdout };
        try {
          return await untilExit(this.#command(command, state.copy(), own));
        } finally {
          to?.end();
          from?.close();
        }
      }),
    );
    return codes.at(-1) ?? 0;
  }

  async #command(command: SimpleCommand, state: ShellState, stdio: Stdio): Promise<number> {
    const { line, assignments, words, redirections } = command;
    const argv = words
      .flatMap((word) => state.expand(word))
      .flatMap(({ text, pattern }) => expandPattern(pattern, state.cwd, this.#parts.files) ?? [text]);
    let own = stdio;
    for (const { fd, operator, target } of redirections) {
      const path = state.expandText(target);
      try {
        own = redirected(own, fd, operator, path, this.#parts.files, state);
      } catch (error) {
        if (!(error instanceof FileFault)) throw error;
        await stdio.stderr.write(Buffer.from(`${prefixOf(line)}${path}: ${error.message}\n`));
        return 1;
      }
    }
    // Before a command they are that command's alone.
    const scope = argv.length === 0 || assignments.length === 0 ? state : state.copy();
    for (const { name, value } of assignments) {
      scope.variables.set(name, state.expandText(value));
      if (argv.length > 0) scope.exported.add(name);
    }
    return argv.length === 0 ? 0 : await this.#program(argv, scope, own, line);
  }

  async #program(argv: readonly string[], state: ShellState, stdio: Stdio, line: number): Promise<number> {
    const [name = "", ...args] = argv;
    const shellPrefix = prefixOf(line);
    try {
      const prepared = this.#parts.prepared(argv, state);
      if (prepared !== undefined) return await prepared(stdio);
      const program = PROGRAMS.get(name.replace(/^(\/usr)?\/bin\//, ""));
      if (program === undefined) {
        const reason = name.includes("/") ? "No such file or directory" : "command not found";
        await stdio.stderr.write(Buffer.from(`${shellPrefix}${name}: ${reason}\n`));
        return 127;
      }
      const runScript = (script: string) => untilExit(this.run(script, state.copy(), stdio));
      return await program({ name, args, stdio, files: this.#parts.files, state, runScript, shellPrefix });
    } catch (error) {
      // Whoever reads has gone: SIGPIPE ends a program without a word.
      if (error instanceof BrokenPipe) return 141;
      if (!(error instanceof Complaint || error instanceof FileFault)) throw error;
      const speaker = OF_THE_SHELL.has(name) ? `${shellPrefix}${name}` : name;
      await stdio.stderr.write(Buffer.from(`${speaker}: ${error.message}\n`));
      return error instanceof Complaint ? error.exitCode : 1;
    }
  }
}

function redirected(
  stdio: Stdio,
  fd: number,
  operator: "<" | ">" | ">>" | ">&",
  path: string,
  files: MountedFiles,
  state: ShellState,
): Stdio {
  const place = files.resolve(state.cwd, path);
  if (operator === "<") return { ...stdio, stdin: fixedSource(files.read(place)) };
  const name = fd === 2 ? "stderr" : "stdout";
  if (operator === ">&") return { ...stdio, [name]: path === "2" ? stdio.stderr : stdio.stdout };
  return { ...stdio, [name]: fileSink(files, place, operator === ">>", stdio.signal) };
}

function fileSink(files: MountedFiles, path: string, append: boolean, signal: AbortSignal): ByteSink {
  files.open(path, { append });
  return {
    async write(data) {
      // Others get their turn: nothing here ever waits for a reader.
      await setImmediate();
      if (signal.aborted) throw new Killed();
      if (data.length > 0) files.write(path, data, { append: true });
    },
  };
}

function prefixOf(line: number): string {
  return `/bin/bash: line ${line}: `;
}
