import { compileFunction, Script } from "node:vm";
import type { Language } from "../types.ts";
import { stripTypes } from "./type-stripping.ts";

/** How code is run: never spliced into anything, so that nothing in it is taken for anything else. */
export type RunPlan =
  /** A program without a shell; `stdin` is all of its input. */
  | { readonly kind: "program"; readonly argv: readonly [program: string, ...args: string[]]; readonly stdin: string }
  /** A line for the shell of the sandbox. */
  | { readonly kind: "line"; readonly line: string }
  /** Nothing is to be run: it ends with exit code 1 and this on stderr. */
  | { readonly kind: "failed"; readonly stderr: string };

/** The kernel takes 128 KiB for one argument. */
const ARGUMENT_BYTES = 96 * 1024;

/** For the interpreters of a sandbox. */
export async function runPlan(
  language: Language,
  code: string,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<RunPlan> {
  switch (language) {
    case "python":
      // Unbuffered, so that what was printed is known when the time is up. The rest of its input is empty.
      return { kind: "program", argv: ["python3", "-u", "-B", "-"], stdin: code };
    case "javascript":
      return javaScriptPlan(code);
    case "typescript": {
      const stripped = await stripTypes(code, options.signal);
      return "code" in stripped
        ? javaScriptPlan(stripped.code)
        : { kind: "failed", stderr: `SyntaxError: ${stripped.problem}\n` };
    }
    case "bash":
      return { kind: "program", ...shellProgram("bash", code) };
    case "command":
      return fitsAnArgument(code) ? { kind: "line", line: code } : { kind: "program", ...shellProgram("sh", code) };
  }
}

function javaScriptPlan(code: string): RunPlan {
  return { kind: "program", argv: ["node", `--input-type=${inputType(code)}`, "-"], stdin: code };
}

/** As an argument if it is one, since what reads a script from its input leaves that to the script. */
function shellProgram(
  shell: "bash" | "sh",
  code: string,
): { readonly argv: readonly [string, ...string[]]; readonly stdin: string } {
  return fitsAnArgument(code)
    ? { argv: [shell, "-c", code], stdin: "" }
    : { argv: [shell, "-c", 'eval "$(cat)"'], stdin: code };
}

function fitsAnArgument(code: string): boolean {
  return Buffer.byteLength(code) <= ARGUMENT_BYTES;
}

/** Whether Node is to take code for a module. V8 tells by what it can parse; none of the code is run. */
function inputType(code: string): "module" | "commonjs" {
  // What is neither will say so itself, when it is run.
  return isFunctionBody(code) && !hasAwaitAtTop(code) ? "commonjs" : "module";
}

/** As Node wraps it. `import`, `export` and most uses of `await` do not fit in there. */
function isFunctionBody(code: string): boolean {
  return parses(() => compileFunction(code, ["exports", "require", "module", "__filename", "__dirname"]));
}

/** `await (x)` could also call a function of that name, except in a static block, where there is neither. */
function hasAwaitAtTop(code: string): boolean {
  if (!code.includes("await")) return false;
  const isStrict = parses(() => new Script(`"use strict";\n${code}`));
  return isStrict && !parses(() => new Script(`class C { static {\n${code}\n} }`));
}

function parses(compile: () => unknown): boolean {
  try {
    compile();
    return true;
  } catch {
    return false;
  }
}
