import type { Command, Families } from "./command.ts";
import { HELP, type Option, spelled } from "./option.ts";

type Kind = "directory" | "file";

/** The scripts of the shells, made from the tables of all commands. */
export const SCRIPTS: Readonly<Record<string, (families: Families, commands: readonly Command[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** The commands of two words, by their first. */
function familiesOf(commands: readonly Command[]): ReadonlyMap<string, readonly Command[]> {
  return Map.groupBy(
    commands.filter(({ name }) => name.includes(" ")),
    ({ name }) => name.split(" ")[0]!,
  );
}

function secondOf({ name }: Command): string {
  return name.split(" ")[1]!;
}

/** Every option of a command, each way to write it. */
function flagsOf({ options }: Command): (readonly [flag: string, declared: Option])[] {
  return [...Object.values(options).flat(), HELP].flatMap((declared) => [
    ...(declared.short === undefined ? [] : [[`-${declared.short}`, declared] as const]),
    [spelled(declared), declared] as const,
  ]);
}

/** The first words about an option, for one line. */
function briefly({ about }: Option): string {
  return about.split(/;| \(|\n/)[0]!.replace(/:$/, "");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Needs nothing but bash itself, of any version that can complete. */
function bashScript(words: Families, commands: readonly Command[]): string {
  const families = familiesOf(commands);
  const first = Object.keys(words).join(" ");
  const familyCases = [...families].map(
    ([word, members]) => `    ${word}) next=${quoted(members.map(secondOf).join(" "))} ;;`,
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
    COMPREPLY=( $(compgen -W ${quoted(`${first} help --help --version`)} -- "$current") )
    return 0
  fi
  if [[ $command == help ]]; then
    if (( COMP_CWORD == 2 )); then
      COMPREPLY=( $(compgen -W ${quoted(first)} -- "$current") )
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
${commands.map(bashCase).join("\n")}
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

function bashCase(command: Command): string {
  const flags = flagsOf(command);
  const valued = flags.flatMap(([flag, declared]) =>
    declared.value === undefined ? [] : [`        ${flag}) ${bashValue(declared)} ;;`],
  );
  const cases = valued.length === 0 ? "" : `\n      case $option in\n${valued.join("\n")}\n      esac`;
  const { completes = "other" } = command;
  const takes = typeof completes === "string" ? completes : `words values=${quoted(completes.join(" "))}`;
  return `    ${quoted(command.name)})
      options=${quoted(flags.map(([flag]) => flag).join(" "))} takes=${takes}${cases}
      ;;`;
}

function bashValue({ words, alone, kind }: Option): string {
  if (words === undefined) return `kind=${kind ?? "other"}`;
  return `kind=${alone === undefined ? "words" : "joined"} values=${quoted(words.join(" "))}`;
}

/** Works sourced, and as a file named _agentfense in a directory of $fpath. */
function zshScript(words: Families, commands: readonly Command[]): string {
  const families = familiesOf(commands);
  const first = Object.entries(words).map(([word, { about }]) => described(word, about));
  const familyCases = [...families].map(
    ([word, members]) => `    ${word})
      if (( CURRENT == 3 )); then
        commands=(
${members.map((member) => `          ${described(secondOf(member), member.summary ?? "")}`).join("\n")}
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
${commands.map(zshCase).join("\n")}
  esac
}

if [[ $funcstack[1] == _agentfense ]]; then
  _agentfense "$@"
else
  compdef _agentfense agentfense
fi
`;
}

function zshCase(command: Command): string {
  const { completes } = command;
  const action = Array.isArray(completes) ? `(${completes.join(" ")})` : zshAction(completes as Kind | undefined);
  const specs = [...flagsOf(command).map(zshOption), `'*:argument:${action}'`];
  return `    ${quoted(command.name)})
      _arguments -S \\
${specs.map((spec) => `        ${spec}`).join(" \\\n")}
      ;;`;
}

function zshOption([flag, declared]: readonly [flag: string, declared: Option]): string {
  const { value, words, alone, kind } = declared;
  const text = `[${briefly(declared).replaceAll(/[[\]\\]/g, "\\$&")}]`;
  if (value === undefined) return quoted(`*${flag}${text}`);
  const action = words === undefined ? zshAction(kind) : `(${words.join(" ")})`;
  const [joined, optional] = alone === undefined ? ["", ""] : ["-", ":"];
  // A colon ends what stands for the value.
  return quoted(`*${flag}=${joined}${text}:${optional}${value.replaceAll(":", "\\:")}:${action}`);
}

function zshAction(kind: Kind | undefined): string {
  return kind === undefined ? " " : kind === "file" ? "_files" : "_files -/";
}

function described(word: string, about: string): string {
  return quoted(`${word}:${about.replaceAll(":", "\\:")}`);
}

function fishScript(words: Families, commands: readonly Command[]): string {
  const families = familiesOf(commands);
  const first = Object.entries(words).map(([word, { about }]) => offer("", word, about));
  const second = [...families].flatMap(([word, members]) =>
    members.map((member) => offer(word, secondOf(member), member.summary ?? "")),
  );
  return `# agentfense: completion for fish. Load it with: agentfense completion fish | source
# Whether the words so far are exactly these, and nothing else but options and their values in front of the cursor.
function __agentfense_after
    set -l words (commandline -opc)
    set -e words[1]
    test (count $words) -eq (count $argv); and test "$words" = "$argv"
end

function __agentfense_in
    set -l words (commandline -opc)
    set -e words[1]
    contains -- -- $words; and return 1
    test (count $words) -ge (count $argv); or return 1
    test "$words[1..$(count $argv)]" = "$argv"
end

complete -c agentfense -f
${[...first, offer("", "help", "the help of a command"), ...second].join("\n")}
${commands.flatMap(fishLines).join("\n")}
`;
}

function offer(after: string, word: string, about: string): string {
  return `complete -c agentfense -n ${fishQuoted(`__agentfense_after ${after}`.trim())} -a ${word} -d ${fishQuoted(about)}`;
}

function fishLines(command: Command): string[] {
  const { name, completes = [] } = command;
  const condition = `complete -c agentfense -n ${fishQuoted(`__agentfense_in ${name}`)}`;
  const places =
    typeof completes === "string"
      ? [`${condition} ${FISH_PLACES[completes]}`]
      : completes.map((word) => offer(name, word, ""));
  return [...places, ...flagsOf(command).map(([flag, declared]) => `${condition} ${fishOption(flag, declared)}`)];
}

const FISH_PLACES = { directory: "-a '(__fish_complete_directories)'", file: "-F" } as const;

function fishOption(flag: string, declared: Option): string {
  const name = flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`;
  return [name, ...fishValue(declared), `-d ${fishQuoted(briefly(declared))}`].join(" ");
}

function fishValue({ value, words, alone, kind }: Option): string[] {
  if (value === undefined) return [];
  if (words !== undefined) return [alone === undefined ? "-x" : "-f", `-a ${fishQuoted(words.join(" "))}`];
  return kind === undefined ? ["-x"] : ["-r", FISH_PLACES[kind]];
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, "\\$&")}'`;
}
