import { ExecutorError } from "../../errors.ts";
import type { RunPlan } from "../run-plan.ts";

/** What a program may use. */
interface SubprocessLimits {
  readonly memoryBytes: number;
  readonly cpuSeconds: number;
  readonly fileBytes: number;
}

export interface Tools {
  readonly setpriv: string;
  readonly prlimit: string;
  readonly python: string;
  /** The Node that runs us: its flags are known. */
  readonly node: string;
}

/** What an interpreter needs for itself. */
interface Needs {
  readonly extraBytes: number;
  /** The kernel counts all processes and threads of the user: any limit is a limit to none. Not for root. */
  readonly starts: "none" | "threads";
}

const PYTHON_NEEDS: Needs = { extraBytes: 0, starts: "none" };
/** V8 reserves the room for its code as if it were used, and its threads have stacks. */
const NODE_NEEDS: Needs = { extraBytes: 640 * 1024 ** 2, starts: "threads" };
const OPEN_FILES = 256;

/** The command line of a program: without privileges, within limits, and with nothing that changes what it imports. */
export function commandLine(
  plan: RunPlan & { readonly kind: "program" },
  surroundings: { readonly limits: SubprocessLimits; readonly tools: Tools; readonly directory: string },
): readonly [string, ...string[]] {
  const { limits, tools } = surroundings;
  const [program, ...args] = plan.argv;
  switch (program) {
    case "python3":
      return [...guarded(tools, limits, PYTHON_NEEDS), tools.python, ...PYTHON_FLAGS, "-"];
    case "node": {
      const flags = nodeFlags(limits, surroundings.directory);
      return [...guarded(tools, limits, NODE_NEEDS), tools.node, ...flags, ...args];
    }
    default:
      throw new ExecutorError("INTERNAL", `no subprocess is made of ${program}`);
  }
}

/**
 * No capability, also for root; no new privileges; killed with us. Memory is what is written to: `--as` would count
 * what Node only reserves.
 */
function guarded(
  { prlimit, setpriv }: Tools,
  { cpuSeconds, fileBytes, memoryBytes }: SubprocessLimits,
  { extraBytes, starts }: Needs,
): [string, ...string[]] {
  const privileges = ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--pdeathsig=KILL"];
  const limits = {
    data: memoryBytes + extraBytes,
    cpu: cpuSeconds,
    fsize: fileBytes,
    nofile: OPEN_FILES,
    core: 0,
    ...(starts === "none" ? { nproc: 1 } : {}),
  };
  return [
    setpriv,
    // Somebody without the right to drop what he does not have is asked for nothing.
    ...(process.getuid?.() === 0 ? privileges : privileges.filter((option) => !option.startsWith("--bounding-set"))),
    "--",
    prlimit,
    ...Object.entries(limits).map(([name, value]) => `--${name}=${value}`),
    "--",
  ];
}

/** Isolated: no variables, no directory of the user or of the workspace, no packages. */
const PYTHON_FLAGS = ["-I", "-S", "-B", "-u", "-X", "utf8"];

/** What pure code does not need: files outside, processes, threads, addons, and code from strings. */
function nodeFlags({ memoryBytes }: SubprocessLimits, directory: string): string[] {
  const heap = Math.floor(memoryBytes / 2 ** 20);
  const permissions = process.allowedNodeEnvironmentFlags.has("--permission")
    ? ["--permission", `--allow-fs-read=${directory}`, `--allow-fs-write=${directory}`]
    : [];
  return [`--max-old-space-size=${heap}`, "--disallow-code-generation-from-strings", "--no-addons", ...permissions];
}
