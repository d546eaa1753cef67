import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { bashScript } from "../completion/bash.ts";
import { fishScript } from "../completion/fish.ts";
import { SHAPES } from "../completion/generated/commands.ts";
import type { CommandShape } from "../completion/shape.ts";
import { zshScript } from "../completion/zsh.ts";
import { print } from "../output.ts";
import { printable } from "../terminal.ts";

const HELP = `Usage: agentfense completion bash|zsh|fish

Prints a script that makes your shell complete the commands of agentfense, their options and the values of those. Load it
when the shell starts:
  bash   echo 'source <(agentfense completion bash)' >> ~/.bashrc
  zsh    echo 'source <(agentfense completion zsh)' >> ~/.zshrc      (after compinit)
  fish   agentfense completion fish > ~/.config/fish/completions/agentfense.fish

  -h, --help        this text
`;

const SCRIPTS: Readonly<Record<string, (shapes: readonly CommandShape[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export const completion: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { positionals } = parseArguments(args, {});
  const [shell, ...surplus] = positionals;
  const known = Object.keys(SCRIPTS);
  if (shell === undefined || surplus.length > 0) throw new UsageError(`completion takes a shell: ${known.join(", ")}`);
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
  if (script === undefined) {
    throw new UsageError(`no completion for ${printable(shell)}; there are: ${known.join(", ")}`, {
      slip: { given: shell, known },
    });
  }
  await print(script(SHAPES));
  return 0;
}
