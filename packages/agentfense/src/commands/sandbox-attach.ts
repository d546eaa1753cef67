import type { ProcessOutput } from "@agentfense/protocol/sandbox";
import { type ExecOutput, ExecOutputSchema, ExecOutput_OutputType as Type } from "@agentfense/protocol/sandbox";
import { create } from "@bufbuild/protobuf";
import { UsageError } from "../command.ts";
import { warn } from "../output.ts";
import { remoteCommand } from "../remote/command.ts";
import { followCommand, NOT_RUN } from "../remote/exec-output.ts";
import { whichProcess } from "../remote/process-view.ts";
import type { Server } from "../remote/server.ts";
import { attachTerminal } from "../remote/terminal.ts";

const HELP = `Usage: agentfense sandbox attach [OPTIONS] SANDBOX NUMBER|TAG

The last output of a started process, then what comes, until it has ended. Ctrl-C detaches, and leaves the process running.

  --input           pass on the input from here; its end is that of the process's input
  --terminal        for a process on a terminal of its own: every key goes to it, Ctrl-C too, and it follows the size of the
                    terminal here, which this needs; Ctrl-] detaches, with exit code 0

Exit codes: that of the process; 128 + n when signal n killed it; 124 when its time was up; 125 when it cannot be attached to;
2 when this command was given wrongly; 130 after Ctrl-C.
`;

export const sandboxAttach = remoteCommand({
  name: "sandbox attach",
  help: HELP,
  options: { input: { type: "boolean" }, terminal: { type: "boolean" } },
  takes: ["SANDBOX", "NUMBER|TAG"],
  handlesClosedOutput: true,
  failureCode: NOT_RUN,
  async run({ server, values, given: [sandboxId, which], json }) {
    const request = { sandboxId, ...whichProcess(which) };
    if (values.terminal === true) {
      if (values.input === true || json) throw new UsageError("--terminal goes with neither --input nor --json");
      return await attachTerminal(server, request);
    }
    return await followCommand(
      async function* (signal) {
        const outputs = server.sandboxes.attachProcess(request, { signal });
        let isAttached = false;
        for await (const output of outputs) {
          if (!isAttached && values.input === true) void passInput(server, request, signal);
          isAttached = true;
          yield asCommandOutput(output);
        }
      },
      { json },
    );
  },
});

/** Beside the output, which tells how it ends: a process that takes no more input is no failure of ours. */
async function passInput(
  { sandboxes }: Server,
  request: { readonly sandboxId: string },
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const data of process.stdin) await sandboxes.sendInput({ ...request, data: data as Buffer }, { signal });
    await sandboxes.closeInput(request, { signal });
  } catch (error) {
    if (!signal.aborted) warn(`the input is not passed on: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function asCommandOutput({
  type,
  data,
  lostBytes,
  exitCode,
  signal,
  timedOut,
  outOfMemory,
}: ProcessOutput): ExecOutput {
  if (lostBytes > 0n) warn(`${lostBytes} bytes before this were not kept`);
  const isErrors = (type as number) === Type.STDERR;
  return create(ExecOutputSchema, {
    ...{ type: isErrors ? Type.STDERR : Type.STDOUT, data, signal, timedOut, outOfMemory },
    ...(exitCode === undefined ? {} : { exitCode }),
  });
}
