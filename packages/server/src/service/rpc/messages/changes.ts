import type {
  ApplyChangesResponse_OutcomeSchema,
  ChangeSchema,
  ExplainPathResponse_CandidateSchema,
  ExplainPathResponseSchema,
  FileDiffSchema,
} from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ApplyOutcome, Explanation, FileDiff, SandboxChange } from "../../../runtime/sandboxes/api.ts";
import { CHANGE_KINDS, CHANGE_TYPES, PERMISSIONS } from "./enums.ts";
import { ruleMessage } from "./sandbox.ts";

export function changeMessage(change: SandboxChange): MessageInitShape<typeof ChangeSchema> {
  return {
    kind: CHANGE_KINDS[change.kind],
    path: change.path,
    oldPath: change.oldPath,
    type: CHANGE_TYPES[change.type],
    size: BigInt(Math.trunc(change.size)),
    ...(change.folded && { folded: change.folded }),
  };
}

/** A text that no message can hold comes in several. */
export function* diffMessages(diff: FileDiff, roomBytes: number): Generator<MessageInitShape<typeof FileDiffSchema>> {
  const { unified, binary } = diff;
  const change = changeMessage(diff.change);
  // A character takes three bytes at most, of a pair four for two.
  const room = Math.floor(roomBytes / 3);
  let start = 0;
  while (unified.length - start > room) {
    const splitsPair = /[\ud800-\udbff]/.test(unified.charAt(start + room - 1));
    const end = start + room - (splitsPair ? 1 : 0);
    yield { change, unified: unified.slice(start, end), binary, more: true };
    start = end;
  }
  yield { change, unified: unified.slice(start), binary, more: diff.more };
}

export function outcomeMessage(outcome: ApplyOutcome): MessageInitShape<typeof ApplyChangesResponse_OutcomeSchema> {
  return {
    change: changeMessage(outcome.change),
    applied: outcome.applied,
    reason: outcome.reason,
    sensitive: outcome.sensitive,
    conflict: outcome.conflict,
  };
}

export function explanationMessage(answer: Explanation): MessageInitShape<typeof ExplainPathResponseSchema> {
  return {
    path: answer.path,
    permission: PERMISSIONS[answer.permission],
    ...(answer.deciding === undefined ? {} : { deciding: candidateMessage(answer.deciding) }),
    losing: answer.losing.map(candidateMessage),
    explanation: answer.text,
  };
}

function candidateMessage(
  candidate: Explanation["losing"][number],
): MessageInitShape<typeof ExplainPathResponse_CandidateSchema> {
  return { index: candidate.index, rule: ruleMessage(candidate.rule), reason: candidate.reason };
}
