import { findKeys } from "./keys-in-text.ts";

/** Of each section the keys whose values are no credentials, whoever writes them; `*` is all of a section's. */
const HARMLESS: Readonly<Record<string, readonly string[]>> = {
  core: [
    ...[
      "repositoryformatversion",
      "filemode",
      "bare",
      "logallrefupdates",
      "ignorecase",
      "precomposeunicode",
      "symlinks",
    ],
    ...[
      "autocrlf",
      "eol",
      "safecrlf",
      "sparsecheckout",
      "sparsecheckoutcone",
      "worktree",
      "abbrev",
      "quotepath",
      "longpaths",
    ],
    ...["untrackedcache", "commitgraph", "multipackindex", "compression", "sharedrepository", "fscache"],
  ],
  extensions: ["*"],
  user: ["name", "email", "useconfigonly"],
  remote: [
    "url",
    "pushurl",
    "fetch",
    "push",
    "prune",
    "tagopt",
    "mirror",
    "promisor",
    "partialclonefilter",
    "gh-resolved",
  ],
  branch: ["remote", "merge", "rebase", "pushremote", "description", "vscode-merge-base", "gh-merge-base"],
  submodule: ["url", "active", "path", "branch", "update", "recurse", "fetchjobs"],
  pull: ["rebase", "ff"],
  push: ["default", "autosetupremote", "followtags"],
  fetch: ["prune", "prunetags", "parallel"],
  merge: ["ff", "conflictstyle", "renamelimit"],
  rebase: ["autostash", "autosquash", "updaterefs"],
  diff: ["renames", "renamelimit", "algorithm", "colormoved"],
  gc: ["auto", "autodetach"],
  index: ["version", "threads", "skiphash"],
  commit: ["gpgsign", "verbose"],
  color: ["ui"],
  init: ["defaultbranch"],
  lfs: ["repositoryformatversion"],
};

const SECTION = /^\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\][ \t]*$/;
const SETTING = /^([A-Za-z][A-Za-z0-9-]*)(?:[ \t]*=[ \t]*(.*))?$/;

/** Who is asked for a password later, or is known by a key: a name before the host is no secret there, it is in front of https. */
const PLAIN_URL =
  /^(?:https?:\/\/[^@?#\s]+|(?:ssh|git\+ssh):\/\/(?:[\w.-]{1,32}@)?[^@?#\s]+|git:\/\/[^@?#\s]+|(?:[\w.-]{1,32}@)?[\w.-]+:[^@?#\s]+|[./][^@?#\s]*)$/;

/**
 * All that stands in the settings of a repository (`.git/config`) is of kinds that hold no credentials: nothing that is not
 * known, no command, no other file, no URL with somebody in front of its host.
 */
export function holdsNoCredentials(text: string): boolean {
  let section = "";
  for (const raw of text.split(/\r?\n/)) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#") || line.startsWith(";")) continue;
    if (line.endsWith("\\")) return false;
    const heading = SECTION.exec(line);
    if (heading !== null) {
      section = heading[1]!.toLowerCase();
      if (!Object.hasOwn(HARMLESS, section)) return false;
      continue;
    }
    const [, key = "", value = ""] = SETTING.exec(line) ?? [];
    const known = HARMLESS[section] ?? [];
    if (key === "" || !(known.includes("*") || known.includes(key.toLowerCase()))) return false;
    if (/url$/i.test(key) && !PLAIN_URL.test(value.trim())) return false;
  }
  return findKeys(text).length === 0;
}
