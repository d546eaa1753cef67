import { compileFunction, Script } from "node:vm";
import { Worker } from "node:worker_threads";
import type { Language } from "../types.ts";

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

type Stripped = { readonly code: string } | { readonly problem: string };

const TIME_LIMIT_MS = 10_000;

// Code made for it breaks the parser, and it stays broken for the whole thread: for Node's own loading of modules too.
const THREAD = `
const { stripTypeScriptTypes } = require("node:module");
const { parentPort, workerData } = require("node:worker_threads");
try {
  parentPort.postMessage({ code: stripTypeScriptTypes(workerData, { mode: "strip" }) });
} catch (error) {
  const isAboutCode = /TYPESCRIPT_SYNTAX$/.test(error.code);
  parentPort.postMessage({ problem: isAboutCode ? error.message : "this cannot be parsed" });
}`;

/** TypeScript without its types, each character where it was; or what is wrong with it. In a thread of its own. */
async function stripTypes(code: string, signal?: AbortSignal): Promise<Stripped> {
  signal?.throwIfAborted();
  const worker = new Worker(THREAD, {
    eval: true,
    workerData: code,
    env: {},
    execArgv: ["--no-warnings"],
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  const { promise, reject, resolve } = Promise.withResolvers<Stripped>();
  const abort = (): void => reject(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  worker.once("message", resolve);
  worker.once("error", () => resolve({ problem: "this cannot be parsed" }));
  worker.once("exit", () => resolve({ problem: "this cannot be parsed" }));
  const timer = setTimeout(() => resolve({ problem: "this takes too long to parse" }), TIME_LIMIT_MS);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    await worker.terminate();
  }
}
