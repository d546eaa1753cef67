import { requirements } from "./requirement.ts";

const SERVICE = { later: "the service and the SDKs choose rules for a sandbox; the mount takes the rules it is given" };

/** How rules decide, and what each level allows. */
export const PERMISSIONS = requirements([
  ["P-01", "The path of an entry decides, for creating, deleting and renaming too."],
  ["P-02", "An explicit type, directory or file, is obeyed."],
  ["P-03", "Without a type, or as a glob, a rule's type is inferred from its pattern."],
  ["P-04", "A star and a question mark stay within one segment, two stars span any number; classes and braces choose."],
  ["P-05", "A directory followed by two stars covers the directory itself."],
  ["P-06", "A pattern without a slash matches at any depth, one with a slash is anchored at the root."],
  ["P-07", "Names with a dot are not special, and case matters."],
  ["P-08", "Priority decides first, then file over directory over glob, then the more specific pattern."],
  ["P-09", "The same pattern twice at one priority: the later rule replaces the earlier."],
  ["P-10", "In any other tie the stricter rule wins, and lint says so."],
  ["P-11", "What no rule matches is hidden."],
  ["P-12", "A malformed rule is refused with its index and the reason, never ignored."],
  ["P-13", "Matching takes time in proportion to the path, whatever the pattern."],
  ["P-14", "A hidden directory hides all below it; only a rule that outranks the hiding one shows something there."],
  ["P-15", "Directories on the way to something visible are visible and can be entered."],
  ["P-16", "A hidden directory that holds nothing visible does not exist."],
  [
    "P-17",
    "A directory on the way lists only what is visible, and only a path whose own level is write can be made in it.",
  ],
  ["P-18", "Hidden is nonexistent in every operation, and absent from listings."],
  ["P-19", "Hidden entries leave no trace in link counts, sizes, times, offsets, inode numbers or statfs."],
  [
    "P-20",
    "Creating, linking or renaming onto a path whose level is not write is EACCES, whether something is there or not.",
  ],
  ["P-21", "View: stat, list and readlink work, opening content is EACCES."],
  ["P-22", "Read: any change is EACCES."],
  ["P-23", "access(2) and the mode bits agree with the rules."],
  ["P-24", "A file is renamed or linked only with write at its old and its new path."],
  ["P-25", "Renaming a directory that exists in the codebase is always EXDEV."],
  ["P-26", "Directories that exist only in the delta move freely."],
  [
    "P-27",
    "rmdir of a directory whose visible content is gone succeeds; hidden entries are neither revealed nor deleted.",
  ],
  ["P-28", "New rules hold for every path operation and every new open at once, the kernel's caches included."],
  ["P-29", "What is open keeps what it was opened for."],
  ["P-30", "On a revocable mount handles are checked at each read and write, and there is no passthrough."],
  ["P-31", "explain names the rule that decides and those that lost."],
  ["P-32", "lint reports rules that match nothing, secrets that stay visible, and ties."],
  ["P-33", "The presets give the levels their names promise, with secrets hidden where they say so."],
  ["P-34", "Overrides of an extended preset win over all else, and presets can be registered."],
  ["P-35", "A refused operation is reported as an event with path, level and rule."],
  ["P-36", "agent-safe is the preset of a sandbox that names none.", SERVICE],
  ["P-37", "Rules without a preset are exactly those rules; with one, the preset's come first."],
]);
