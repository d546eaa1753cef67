import { familiesOf, firstWordsOf } from "./families.ts";
import { FAMILIES } from "./generated/commands.ts";
import type { CommandShape, OptionShape, ValueKind } from "./shape.ts";
import { wordsFor } from "./words.ts";

export function fishScript(shapes: readonly CommandShape[]): string {
  const families = familiesOf(shapes);
  const summaries = new Map(shapes.map(({ name, summary }) => [name, summary]));
  const first = firstWordsOf(shapes).map((word) => offer("", word, summaries.get(word) ?? FAMILIES[word] ?? ""));
  const second = [...families].flatMap(([word, members]) =>
    members.map(({ name, summary }) => offer(word, name.split(" ")[1]!, summary)),
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
${shapes.flatMap(commandLines).join("\n")}
`;
}

function offer(after: string, word: string, about: string): string {
  return `complete -c agentfense -n ${quoted(`__agentfense_after ${after}`.trim())} -a ${word} -d ${quoted(about)}`;
}

function commandLines({ name, options, takes, words = [] }: CommandShape): string[] {
  const condition = `complete -c agentfense -n ${quoted(`__agentfense_in ${name}`)}`;
  const places = takes === "other" ? [] : [`${condition} ${PLACES[takes]}`];
  const offers = words.map((word) => offer(name, word, ""));
  return [...places, ...offers, ...options.map((option) => `${condition} ${optionPart(option)}`)];
}

const PLACES: Readonly<Record<Exclude<ValueKind, "other">, string>> = {
  directory: "-a '(__fish_complete_directories)'",
  file: "-F",
};

function optionPart({ name, about, value }: OptionShape): string {
  const flag = name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`;
  return [flag, ...valuePart(name, value), `-d ${quoted(about)}`].join(" ");
}

function valuePart(name: string, value: OptionShape["value"]): string[] {
  if (value === undefined) return [];
  const words = wordsFor(name);
  if (words.length > 0) return [value.optional ? "-f" : "-x", `-a ${quoted(words.join(" "))}`];
  return value.kind === "other" ? ["-x"] : ["-r", PLACES[value.kind]];
}

function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, "\\$&")}'`;
}
