import type { ExecOutcome, Sandbox } from "@agentfense/server/isolation";
import { RawTerminal, terminalSize } from "./raw-terminal.ts";
import type { SandboxRequest } from "./sandbox-request.ts";

/** What kind of terminal this is, the programs inside have to know; nothing else of our environment is their business. */
const OF_THE_TERMINAL = ["TERM", "COLORTERM"];

/** Connects the user's terminal with a program in the sandbox, by default a shell, until that ends. */
export async function converse(
  sandbox: Sandbox,
  { spec, workdir }: SandboxRequest,
  { argv, signal }: { readonly argv?: readonly [string, ...string[]]; readonly signal: AbortSignal },
): Promise<ExecOutcome> {
  using user = new RawTerminal();
  const known = OF_THE_TERMINAL.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  await using terminal = await sandbox.terminal(
    {
      size: terminalSize(),
      env: { ...Object.fromEntries(known), ...spec.env },
      ...(argv === undefined ? {} : { argv }),
      ...(workdir === undefined ? {} : { workdir }),
    },
    { signal },
  );
  // A shell in the sandbox takes Ctrl-Z itself; an agent there has none above it.
  await user.connect(terminal, argv === undefined ? undefined : sandbox);
  return await terminal.exit;
}
