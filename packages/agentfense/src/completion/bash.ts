import { familiesOf, firstWordsOf } from "./families.ts";
import type { CommandShape, OptionShape, ValueKind } from "./shape.ts";
import { wordsFor } from "./words.ts";

/** Needs nothing but bash itself, of any version that can complete. */
export function bashScript(shapes: readonly CommandShape[]): string {
  const families = familiesOf(shapes);
  const familyCases = [...families].map(
    ([word, members]) => `    ${word}) next=${quoted(members.map(({ name }) => name.split(" ")[1]).join(" "))} ;;`,
  );
  return `# agentfense: completion for bash. Load it with: source <(agentfense completion bash)
_agentfense() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} option= joined= at
  COMPREPLY=()
  for (( at = 1; at < COMP_CWORD; at++ )); do
    [[ \${COMP_WORDS[at]} == -- ]] && return 0
  done
  # To bash, --network=none is three words.
  if [[ $current == = ]]; then
    option=$before joined=1 current=
  elif [[ $before == = ]] && (( COMP_CWORD > 2 )); then
    option=\${COMP_WORDS[COMP_CWORD-2]} joined=1
  elif [[ $before == -* ]]; then
    option=$before
  fi

  local command=\${COMP_WORDS[1]} next=
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=( $(compgen -W ${quoted(`${firstWordsOf(shapes).join(" ")} help --help --version`)} -- "$current") )
    return 0
  fi
  if [[ $command == help ]]; then
    if (( COMP_CWORD == 2 )); then
      COMPREPLY=( $(compgen -W ${quoted(firstWordsOf(shapes).join(" "))} -- "$current") )
      return 0
    fi
    command=\${COMP_WORDS[2]}
  fi
  case $command in
${familyCases.join("\n")}
  esac
  if [[ -n $next ]]; then
    if (( COMP_CWORD == 2 )) || [[ \${COMP_WORDS[1]} == help ]]; then
      COMPREPLY=( $(compgen -W "$next" -- "$current") )
      return 0
    fi
    command="$command \${COMP_WORDS[2]}"
  fi

  local options= values= kind= takes=
  case $command in
${shapes.map(commandCase).join("\n")}
  esac
  # A value that may be left out has to be joined to its option.
  [[ $kind == joined && -z $joined ]] && kind= values=
  case $kind in
    words | joined) COMPREPLY=( $(compgen -W "$values" -- "$current") ) ;;
    directory) _agentfense_paths -d "$current" ;;
    file) _agentfense_paths -f "$current" ;;
    other) ;;
    *)
      if [[ $current == -* ]]; then
        COMPREPLY=( $(compgen -W "$options" -- "$current") )
      elif [[ $takes == directory ]]; then
        _agentfense_paths -d "$current"
      elif [[ $takes == words ]]; then
        COMPREPLY=( $(compgen -W "$values" -- "$current") )
      elif [[ $takes == file ]]; then
        _agentfense_paths -f "$current"
      fi
      ;;
  esac
}

_agentfense_paths() {
  local path
  compopt -o filenames 2> /dev/null
  while IFS= read -r path; do
    COMPREPLY+=( "$path" )
  done < <(compgen "$1" -- "$2")
}

complete -o bashdefault -F _agentfense agentfense
`;
}

function commandCase({ name, options, takes, words }: CommandShape): string {
  const valued = options.flatMap((option) => {
    const what = valueCase(option);
    return what === undefined ? [] : [`        ${option.name}) ${what} ;;`];
  });
  const cases = valued.length === 0 ? "" : `\n      case $option in\n${valued.join("\n")}\n      esac`;
  return `    ${quoted(name)})
      options=${quoted(options.map((option) => option.name).join(" "))} takes=${words === undefined ? takes : `words values=${quoted(words.join(" "))}`}${cases}
      ;;`;
}

function valueCase({ name, value }: OptionShape): string | undefined {
  if (value === undefined) return undefined;
  const words = wordsFor(name);
  if (words.length === 0) return `kind=${value.kind satisfies ValueKind}`;
  return `kind=${value.optional ? "joined" : "words"} values=${quoted(words.join(" "))}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
