import type { Command, Family } from "./command.ts";
import { HELP, type Option, spelled } from "./option.ts";

/** What fits on one screen of a terminal: every first word with what it is about. */
export function overview(groups: Readonly<Record<string, Readonly<Record<string, Family>>>>): string {
  const width = Math.max(...Object.keys(groups).map((title) => title.length)) + 2;
  const rows = Object.entries(groups).flatMap(([title, families]) =>
    Object.entries(families).map(
      ([word, { about }], index) => `${(index === 0 ? title : "").padEnd(width)}${word.padEnd(12)}${about}`,
    ),
  );
  return `Usage: agentfense COMMAND [OPTIONS] … runs an untrusted agent with least privilege per file.
${rows.join("\n")}
help COMMAND tells more. Exit codes: 0 done, 1 failed or a no, 2 given wrongly; run: its command's.
`;
}

/** The commands that begin with this word, each with its line. */
export function familyHelp(word: string, commands: readonly Command[]): string {
  const rows = commands.map(({ name, summary }) => `  ${name.padEnd(21)}${summary ?? ""}`);
  return `Usage: agentfense ${word} COMMAND [OPTIONS] …\n\nCommands:\n${rows.join("\n")}\n`;
}

export function commandHelp({ name, usage, about, options, takes, passes, notes }: Command): string {
  const behind = [usage ?? ["[OPTIONS]", ...takes, ...(passes === undefined ? [] : [passes])].join(" ")].flat();
  const uses = behind.map((line, index) => `${index === 0 ? "Usage:" : "      "} agentfense ${name} ${line}`);
  const groups = Object.entries(options).filter(([, list]) => list.length > 0);
  const [title, list] = groups.pop() ?? ["", []];
  const sections = [...groups, [title, [...list, HELP]] as const].map(([each, declared]) =>
    [...(each === "" ? [] : [`${each}:`]), ...declared.map(optionHelp)].join("\n"),
  );
  return `${[uses.join("\n"), about, ...sections, ...(notes === undefined ? [] : [notes])].join("\n\n")}\n`;
}

const COLUMN = 18;

/** "  -o, --output FILE  into this file": what follows in further lines stands under the first. */
function optionHelp(declared: Option): string {
  const { short, value, alone, about } = declared;
  const taken = value === undefined ? "" : alone === undefined ? ` ${value}` : `[=${value}]`;
  const words = `${short === undefined ? "" : `-${short}, `}${spelled(declared)}${taken}`;
  const [first = "", ...rest] = about.split("\n");
  const begin = words.length <= COLUMN - 2 ? words.padEnd(COLUMN) : `${words}  `;
  return [`  ${begin}${first}`, ...rest.map((line) => `${" ".repeat(COLUMN + 2)}${line}`)].join("\n");
}
