import { textOf } from "../filesystem/names.ts";

const UNUSUAL = /[\u0000-\u001f"\\\u007f\udc80-\udcff]/u;

const ESCAPES: Readonly<Record<string, string>> = {
  "\u0007": "\\a",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\u000b": "\\v",
  "\f": "\\f",
  "\r": "\\r",
  '"': '\\"',
  "\\": "\\\\",
};

/** A name as git writes it (core.quotePath=false): as it is, or in quotes, as in C, when anything unusual is in it. */
export function quotedName(name: string): string {
  if (!UNUSUAL.test(name)) return name;
  const escaped = name.replace(new RegExp(UNUSUAL, "gu"), (character) => {
    return ESCAPES[character] ?? `\\${(character.charCodeAt(0) & 0xff).toString(8).padStart(3, "0")}`;
  });
  return `"${escaped}"`;
}

/** For `---` and `+++`: a tab behind a name with a space, so that nobody takes what follows the space for a time. */
export function nameOnLine(name: string): string {
  return `${quotedName(name)}${name.includes(" ") ? "\t" : ""}`;
}

/** What names that lead into a repository's own directory look like to git, also on file systems that are not ours. */
const REPOSITORY = /^(\.git|git~1)[ .]*([:\\]|$)/i;
const MODULES = /^(\.gitmodules|gitmod~[1-4])[ .]*([:\\]|$)/i;

/** git takes no patch with such a path: it would write into the repository itself, or a link for a file it trusts. */
export function isRefusedByGit(names: readonly string[], isLink: boolean): boolean {
  const texts = names.map(textOf);
  return texts.some((name) => REPOSITORY.test(name)) || (isLink && texts.some((name) => MODULES.test(name)));
}
