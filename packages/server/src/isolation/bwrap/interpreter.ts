import { execFile } from "node:child_process";
import { realpath } from "node:fs/promises";
import { basename } from "node:path";
import { promisify } from "node:util";
import { IsolationError } from "../backend/isolation-error.ts";

const run = promisify(execFile);
const PLACE = "/run/agentfense";

/** What runs the keeper in a box: a command line, and what has to be shown in the box for it. */
export interface Interpreter {
  readonly argv: readonly string[];
  readonly binds: readonly { readonly source: string; readonly target: string }[];
}

/** A box with the host's programs has perl where the host has it. */
export function sharedInterpreter(perl: string): Interpreter {
  return { argv: [perl], binds: [] };
}

/**
 * A root directory need not have perl, nor any library: the host's is shown in it, with its libraries and the program that
 * loads them.
 */
export async function carriedInterpreter(perl: string): Promise<Interpreter> {
  const libraries = await librariesOf(perl);
  const binds = await Promise.all(
    [perl, ...libraries].map(async (path) => ({ source: await realpath(path), target: `${PLACE}/${basename(path)}` })),
  );
  const loader = libraries.find((path) => /^ld[-.]/.test(basename(path)));
  const program = `${PLACE}/${basename(perl)}`;
  const loading = loader === undefined ? [] : [`${PLACE}/${basename(loader)}`, "--library-path", PLACE];
  return { argv: [...loading, program], binds };
}

async function librariesOf(program: string): Promise<string[]> {
  try {
    const { stdout } = await run("ldd", [program], { env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } });
    return stdout.match(/\/\S+/g) ?? [];
  } catch (cause) {
    throw new IsolationError(
      "RUNTIME_UNAVAILABLE",
      "the libraries of perl could not be found, which a root directory needs",
      {
        hint: "`ldd $(which perl)` shows why",
        cause,
      },
    );
  }
}
