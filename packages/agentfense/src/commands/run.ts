import { command } from "../command.ts";
import { EXPLAIN, SANDBOX_OPTIONS } from "../run/options.ts";
import { json, timeout } from "../shared-options.ts";

export const run = command({
  name: "run",
  usage: "[OPTIONS] [DIR] -- COMMAND [ARGUMENT…]",
  about: `Runs COMMAND in a sandbox that sees DIR (default: where you are) at /workspace as the rules allow, and lists what it
changed. DIR itself is not written unless you ask for it.

COMMAND with arguments is run as it stands. COMMAND alone is a line for the shell:
  agentfense run -- npm test
  agentfense run -- 'grep -rn TODO src | head'

Its output is passed on as it comes, input from a pipe or a file is passed in; what we have to say goes to stderr.`,
  options: {
    ...SANDBOX_OPTIONS,
    Other: [
      EXPLAIN,
      timeout("kill it after 30s, 10m … (default: never)"),
      json(`one JSON object at the end instead: { exitCode, signal, timedOut, truncated, outOfMemory, durationMs,
stdout, stderr, changes, applied, problem, delta }; of stdout and stderr at most 10 MiB each`),
    ],
  },
  takes: ["[DIR]"],
  wants: "one directory",
  completes: "directory",
  passes: "-- COMMAND [ARGUMENT…]",
  notes: `Exit codes: that of the command; 128 + n when signal n killed it; 123 when it ended with 0 but --apply could not write back
all of its changes; 124 when its time was up; 125 when it could not be run; 2 when this command was given wrongly; 130 after
Ctrl-C, 143 after SIGTERM.`,
  handlesClosedOutput: true,
  run: async (call) => await (await import("../run/run.ts")).runCommand(call),
});

export const shell = command({
  name: "shell",
  about: `An interactive shell in a sandbox that sees DIR (default: where you are) at /workspace as the rules allow. Lists what was
changed when it ends, and ends with the code of the shell, or with 123 when that is 0 and --apply could not write back all
of the changes. Needs a terminal; without one, see agentfense run.`,
  options: SANDBOX_OPTIONS,
  takes: ["[DIR]"],
  wants: "one directory",
  completes: "directory",
  handlesClosedOutput: true,
  run: async (call) => await (await import("../run/run.ts")).runShell(call),
});
