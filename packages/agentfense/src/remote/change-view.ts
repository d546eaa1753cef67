import type { Change } from "@agentfense/protocol/sandbox";
import { paintMark } from "../changes/colours.ts";
import { shownPath } from "../changes/table.ts";
import { paintFor, printable } from "../terminal.ts";
import { CHANGE_KINDS, ENTRY_KINDS, wordFor } from "./words.ts";

/** "M  /src/a.ts": A, M, D or R, a mark for what deserves a look, and the path; for a rename where it was, too. */
export function changeLine(change: Change, paint = paintFor(process.stdout, process.env)): string {
  const letter = change.folded ? "I" : wordFor(CHANGE_KINDS, change.kind).charAt(0).toUpperCase() || "?";
  const mark = change.sensitive ? "!" : " ";
  const path = shownPath({ path: change.path, type: wordFor(ENTRY_KINDS, change.type) });
  return `${paintMark(letter, mark, paint)} ${change.oldPath === "" ? "" : `${printable(change.oldPath)} -> `}${path}`;
}
