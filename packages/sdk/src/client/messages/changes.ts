import type {
  ApplyChangesResponse,
  ChangeCounts as ChangeCountsMessage,
  Change as ChangeMessage,
  FileDiff as FileDiffMessage,
} from "@agentfense/protocol/sandbox";
import { SandboxError } from "../../errors.ts";
import type { ApplyResult, Change, ChangeCounts, FileDiff } from "../../model/records.ts";
import { numberOf } from "./numbers.ts";
import { CHANGE_KINDS, CHANGE_TYPES, wordOf } from "./words.ts";

export function changeOf(message: ChangeMessage | undefined): Change {
  if (message === undefined) throw new SandboxError("the server left out what changed", { code: "UNKNOWN" });
  return {
    kind: wordOf(CHANGE_KINDS, message.kind, "kind of change"),
    path: message.path,
    oldPath: message.oldPath,
    type: wordOf(CHANGE_TYPES, message.type, "kind of file"),
    size: numberOf(message.size),
    sensitive: message.sensitive,
    ...(message.folded && { folded: countsOf(message.folded) }),
  };
}

function countsOf({ added, modified, deleted, renamed }: ChangeCountsMessage): ChangeCounts {
  return { added, modified, deleted, renamed };
}

/** One diff, of the messages that it came in. */
export function fileDiffOf(messages: readonly [FileDiffMessage, ...FileDiffMessage[]]): FileDiff {
  const [{ change, binary }] = messages;
  return { change: changeOf(change), unified: messages.map(({ unified }) => unified).join(""), binary };
}

export function applyResultOf({ version, outcomes }: ApplyChangesResponse): ApplyResult {
  return {
    version: numberOf(version),
    outcomes: outcomes.map(({ change, applied, reason, sensitive, conflict }) => ({
      change: changeOf(change),
      applied,
      reason,
      sensitive,
      conflict,
    })),
  };
}
