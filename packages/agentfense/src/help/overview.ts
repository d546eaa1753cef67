import { COMMANDS, FAMILIES, GROUPS } from "../commands.ts";

/** What fits on one screen of a terminal: every first word with what it is about. */
export function overview(): string {
  const width = Math.max(...GROUPS.map(({ title }) => title.length)) + 2;
  const rows = GROUPS.flatMap(({ title, words }) =>
    words.map((word, index) => `${(index === 0 ? title : "").padEnd(width)}${word.padEnd(12)}${about(word)}`),
  );
  return `Usage: agentfense COMMAND [OPTIONS] …
Runs an untrusted agent against a real codebase with least privilege per file.
${rows.join("\n")}
agentfense help COMMAND tells more; --version the version. Exit codes: 0 done, 1 it did not work or
the answer is no, 2 given wrongly; agent, run and shell end with that of what they ran.
`;
}

function about(word: string): string {
  return FAMILIES[word] ?? COMMANDS[word]!.summary;
}

/** The commands that begin with this word, each with its line. */
export function familyHelp(word: string): string {
  const names = membersOf(word);
  const rows = names.map((name) => `  ${name.padEnd(21)}${COMMANDS[name]!.summary}`);
  return `Usage: agentfense ${word} COMMAND [OPTIONS] …\n\nCommands:\n${rows.join("\n")}\n`;
}

export function membersOf(word: string): string[] {
  return Object.keys(COMMANDS).filter((name) => name.startsWith(`${word} `));
}

/** What can stand first on a command line. */
export function firstWords(): string[] {
  return [...GROUPS.flatMap(({ words }) => words), "help"];
}
