import type { RunPlan } from "../run-plan.ts";

/** What a program may use. */
export interface SubprocessLimits {
  readonly memoryBytes: number;
  readonly cpuSeconds: number;
  readonly fileBytes: number;
}

type ProgramPlan = RunPlan & { readonly kind: "program" };

/** V8 reserves the room for its code as if it were used, and its threads have stacks. */
const NODE_EXTRA_BYTES = 640 * 1024 ** 2;
const OPEN_FILES = 256;

/** The command line of an interpreter within its limits, with nothing of the workspace that changes what it imports. */
export function commandLine(
  plan: ProgramPlan,
  options: { readonly prlimit: string; readonly interpreter: string; readonly limits: SubprocessLimits },
): readonly [string, ...string[]] {
  const { interpreter, limits, prlimit } = options;
  const isPython = plan.argv[0] === "python3";
  const values = {
    // Memory is what is written to: `--as` would count what Node only reserves.
    data: limits.memoryBytes + (isPython ? 0 : NODE_EXTRA_BYTES),
    cpu: limits.cpuSeconds,
    fsize: limits.fileBytes,
    nofile: OPEN_FILES,
    core: 0,
    // The kernel counts all processes and threads of the user: any limit is a limit to none. Not for root.
    ...(isPython ? { nproc: 1 } : {}),
  };
  const flags = isPython ? PYTHON_FLAGS : [heapFlag(limits), ...plan.argv.slice(1)];
  return [prlimit, ...Object.entries(values).map(([name, value]) => `--${name}=${value}`), "--", interpreter, ...flags];
}

/** Isolated: no variables, no directory of the user or of the workspace, no packages. */
const PYTHON_FLAGS = ["-I", "-S", "-B", "-u", "-X", "utf8", "-"];

function heapFlag({ memoryBytes }: SubprocessLimits): string {
  return `--max-old-space-size=${Math.floor(memoryBytes / 2 ** 20)}`;
}
