import { requirements } from "./requirement.ts";

/** SYNC: from the delta to the codebase. */
export const SYNCHRONISATION = requirements([
  ["SYNC-01", "An entry the rules do not let the sandbox write is not synced, and reported."],
  ["SYNC-02", "A whiteout of what the sandbox may not write is not applied, and reported."],
  ["SYNC-03", "A deleted directory loses what is writable and stays while it holds something."],
  ["SYNC-04", "A file of the agent's is never taken for a whiteout."],
  ["SYNC-05", "A whiteout of . or .. deletes nothing."],
  ["SYNC-06", "A symbolic link is synced as a link, never followed."],
  ["SYNC-07", "A link that becomes a directory is replaced; nothing lands in its target."],
  ["SYNC-08", "A link that becomes a file is replaced; nothing lands in its target."],
  ["SYNC-09", "A change of type is applied as a whole or reported; hidden entries survive."],
  ["SYNC-10", "A file with a second name at a protected path is replaced, not written through."],
  ["SYNC-11", "A sync cut short leaves every file old or new, and can be repeated."],
  ["SYNC-12", "A file that changes during the sync is synced whole or later."],
  ["SYNC-13", "A swap to a link between check and copy gains nothing."],
  ["SYNC-14", "Special files are skipped and reported; nothing blocks."],
  ["SYNC-15", "Set-id bits and owners do not reach the codebase."],
  ["SYNC-16", "A sparse giant costs what it holds."],
  ["SYNC-17", "The rules at the time of the sync decide, and only the sandbox's own changes are written."],
  ["SYNC-18", "The server's clock decides who was last, not a file's."],
  ["SYNC-19", "A copy-up without a change overwrites nothing."],
  ["SYNC-20", "Who may not write gets no sync."],
  ["SYNC-21", "A codebase that is gone or replaced takes no sync."],
  ["SYNC-22", "A discarded delta is gone; no other sandbox gets its directory."],
  ["SYNC-23", "Every runtime writes to a delta."],
]);
