import { type Command, UsageError } from "../command.ts";
import { warn } from "../output.ts";
import { exitCodeAfter, reportChanges, settleChanges } from "../run/changes.ts";
import { converse } from "../run/conversation.ts";
import { DeltaPlace } from "../run/delta-place.ts";
import { inSandbox } from "../run/embedded.ts";
import { Interruption } from "../run/interruption.ts";
import { readSandboxRequest, SANDBOX_HELP } from "../run/sandbox-request.ts";

const HELP = `Usage: agentfense shell [OPTIONS] [DIR]

An interactive shell in a sandbox that sees DIR (default: where you are) at /workspace as the rules allow. Lists what was
changed when it ends, and ends with the code of the shell, or with 123 when that is 0 and --apply could not write back all
of the changes. Needs a terminal; without one, see agentfense run.

${SANDBOX_HELP}
  -h, --help        this text
`;

export const shell: Command = { help: HELP, handlesClosedOutput: true, run: runShell };

async function runShell(args: readonly string[]): Promise<number> {
  const { request } = await readSandboxRequest("shell", args, {});
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw new UsageError("shell needs a terminal; for a single command there is: agentfense run -- COMMAND");
  }
  using interruption = new Interruption();
  await using delta = await DeltaPlace.open(request);
  try {
    const { signal } = interruption;
    const { exitCode } = await inSandbox(request, delta.path, interruption, (sandbox) =>
      converse(sandbox, request, { signal }),
    );
    signal.throwIfAborted();
    const settlement = await settleChanges(request, delta, { exitCode, signal });
    reportChanges(request, settlement, exitCode);
    return exitCodeAfter(settlement, exitCode);
  } catch (error) {
    if (interruption.exitCode === undefined) throw error;
    if (delta.isKept) warn(`interrupted; what was changed so far is kept in ${delta.path}`);
    return interruption.exitCode;
  }
}
