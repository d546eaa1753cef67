import { allCommands, command } from "../command.ts";
import { UsageError } from "../failure.ts";
import { print } from "../output.ts";
import { printable } from "../terminal.ts";

const SHELLS = ["bash", "zsh", "fish"];

export const completion = command({
  name: "completion",
  usage: SHELLS.join("|"),
  about: `Prints a script that makes your shell complete the commands of agentfense, their options and the values of those. Load it
when the shell starts:
  bash   echo 'source <(agentfense completion bash)' >> ~/.bashrc
  zsh    echo 'source <(agentfense completion zsh)' >> ~/.zshrc      (after compinit)
  fish   agentfense completion fish > ~/.config/fish/completions/agentfense.fish`,
  takes: ["SHELL"],
  wants: `a shell: ${SHELLS.join(", ")}`,
  completes: SHELLS,
  async run({ given: [shell], families }) {
    const { SCRIPTS } = await import("../completion.ts");
    if (!Object.hasOwn(SCRIPTS, shell)) {
      throw new UsageError(`no completion for ${printable(shell)}; there are: ${SHELLS.join(", ")}`, {
        slip: { given: shell, known: SHELLS },
      });
    }
    await print(SCRIPTS[shell]!(families, await allCommands(families)));
  },
});
