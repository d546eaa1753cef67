import type { TerminalInput, TerminalInput_Open } from "@agentfense/protocol/sandbox";
import { fixedSource } from "../commands/stdio.ts";
import { invalid } from "../faults.ts";
import { type Commission, supervised } from "../sandboxes/commands.ts";
import { checkCommand, checkEnvironment, workingDirectory } from "../sandboxes/requests.ts";
import { LineTerminal } from "../sandboxes/terminal.ts";
import { untilExit } from "../shell/program.ts";
import { ShellState } from "../shell/state.ts";
import type { World } from "../world.ts";
import { required } from "./fields.ts";
import type { SandboxHandlers } from "./sandbox-parts.ts";
import { pieces } from "./uploads.ts";

const LARGEST_SIDE = 65_535;

export function terminalHandlers(world: World): SandboxHandlers<"openTerminal"> {
  return {
    async *openTerminal(requests, signal) {
      const inputs = requests[Symbol.asyncIterator]();
      const open = await readOpen(inputs);
      const sandbox = world.sandbox(open.sandboxId);
      const { argv, env } = open;
      checkEnvironment(env);
      if (argv.length > 0) checkCommand(argv);
      const ended = sandbox.requireAwake();
      const workdir = workingDirectory(sandbox, open.workdir);
      const isShell = argv.length === 0 || (argv.length === 1 && /^(.*\/)?(bash|sh|dash|zsh)$/.test(argv[0]!));
      const commission: Commission = { sandbox, command: argv, env, workdir, stdinText: "", isTerminal: true };
      const state = new ShellState(workdir, { ...sandbox.facts.env, ...env });
      const terminal = new LineTerminal(state, async (line, shell, stdio) => {
        const command = line ?? argv;
        const code = await world.commands.work({ ...commission, command, workdir: shell.cwd }, shell, stdio);
        shell.status = code;
        return code;
      });
      const gone = new AbortController();
      const fault = typeInto(terminal, inputs, gone);
      const parts = supervised(commission, (stdio) => untilExit(terminal.run(stdio, { isShell })), {
        stdin: fixedSource(new Uint8Array()),
        timeoutMs: undefined,
        timeoutSignal: "SIGKILL",
        signal,
        ended: AbortSignal.any([ended, gone.signal]),
      });
      for await (const part of parts) {
        if (part.kind !== "exit") for (const data of pieces(part.data)) yield { data };
        else if (fault.error === undefined) yield { exitCode: part.end.exitCode };
      }
      if (fault.error !== undefined) throw fault.error;
    },
  };
}

async function readOpen(inputs: AsyncIterator<TerminalInput>): Promise<TerminalInput_Open> {
  const first = await inputs.next();
  if (first.done === true) throw invalid("no open received");
  const { input } = first.value;
  if (input.case !== "open") throw invalid("open must be sent first");
  required(input.value.sandboxId, "sandbox_id", "in open");
  checkSize(input.value.size);
  return input.value;
}

/** Types what arrives, beside the output. What the client does wrong closes the terminal and is its error. */
function typeInto(
  terminal: LineTerminal,
  inputs: AsyncIterator<TerminalInput>,
  gone: AbortController,
): { error: unknown } {
  const fault: { error: unknown } = { error: undefined };
  const pump = async (): Promise<void> => {
    for (let next = await inputs.next(); next.done !== true; next = await inputs.next()) {
      const { input } = next.value;
      if (input.case === "open") throw invalid("open already received");
      if (input.case === "resize") checkSize(input.value);
      if (input.case === "data") await terminal.type(input.value);
    }
  };
  pump().catch((error: unknown) => {
    fault.error = error;
    gone.abort();
  });
  return fault;
}

function checkSize(size: { readonly columns: number; readonly rows: number } | undefined): void {
  if (size !== undefined && Math.max(size.columns, size.rows) > LARGEST_SIDE) {
    throw invalid(`a terminal has at most ${LARGEST_SIDE} columns and rows`);
  }
}
