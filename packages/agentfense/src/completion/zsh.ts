import { familiesOf, firstWordsOf } from "./families.ts";
import { FAMILIES } from "./generated/commands.ts";
import type { CommandShape, OptionShape, ValueKind } from "./shape.ts";
import { wordsFor } from "./words.ts";

/** Works sourced, and as a file named _agentfense in a directory of $fpath. */
export function zshScript(shapes: readonly CommandShape[]): string {
  const families = familiesOf(shapes);
  const summaries = new Map(shapes.map(({ name, summary }) => [name, summary]));
  const first = firstWordsOf(shapes).map((word) => described(word, summaries.get(word) ?? FAMILIES[word] ?? ""));
  const familyCases = [...families].map(
    ([word, members]) => `    ${word})
      if (( CURRENT == 3 )); then
        commands=(
${members.map(({ name, summary }) => `          ${described(name.split(" ")[1]!, summary)}`).join("\n")}
        )
        _describe -t commands command commands
        return
      fi
      command="$command $words[3]"
      ;;`,
  );
  return `#compdef agentfense
# agentfense: completion for zsh. Load it with: source <(agentfense completion zsh)
_agentfense() {
  local -a commands
  local command=$words[2]
  if [[ $command == help ]] && (( CURRENT > 2 )); then
    words=( "$words[1]" "\${(@)words[3,-1]}" )
    (( CURRENT-- ))
    command=$words[2]
  fi
  if (( CURRENT == 2 )); then
    commands=(
${[...first, described("help", "the help of a command")].map((line) => `      ${line}`).join("\n")}
    )
    _describe -t commands command commands
    return
  fi
  case $command in
${familyCases.join("\n")}
  esac
  # What is left is the command's own: its name counts as one word.
  if [[ $command == *' '* ]]; then
    words=( "$command" "\${(@)words[4,-1]}" )
    (( CURRENT -= 2 ))
  else
    words=( "$command" "\${(@)words[3,-1]}" )
    (( CURRENT -= 1 ))
  fi
  case $command in
${shapes.map(commandCase).join("\n")}
  esac
}

if [[ $funcstack[1] == _agentfense ]]; then
  _agentfense "$@"
else
  compdef _agentfense agentfense
fi
`;
}

function commandCase({ name, options, takes, words }: CommandShape): string {
  const specs = [
    ...options.map(optionSpec),
    `'*:argument:${words === undefined ? actionOf(takes) : `(${words.join(" ")})`}'`,
  ];
  return `    ${quoted(name)})
      _arguments -S \\
${specs.map((spec) => `        ${spec}`).join(" \\\n")}
      ;;`;
}

function optionSpec({ name, about, value }: OptionShape): string {
  const text = `[${about.replaceAll(/[[\]\\]/g, "\\$&")}]`;
  if (value === undefined) return quoted(`*${name}${text}`);
  const words = wordsFor(name);
  const action = words.length > 0 ? `(${words.join(" ")})` : actionOf(value.kind);
  return quoted(`*${name}=${value.optional ? "-" : ""}${text}:${value.optional ? ":" : ""}${value.name}:${action}`);
}

const ACTIONS: Readonly<Record<ValueKind, string>> = { directory: "_files -/", file: "_files", other: " " };

function actionOf(kind: ValueKind): string {
  return ACTIONS[kind];
}

function described(word: string, about: string): string {
  return quoted(`${word}:${about.replaceAll(":", "\\:")}`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
