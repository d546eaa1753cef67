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
import { ruleMessage } from "./rules.ts";

export function changeMessage(change: SandboxChange): MessageInitShape<typeof ChangeSchema> {
  return {
    kind: CHANGE_KINDS[change.kind],
    path: change.path,
    oldPath: change.oldPath,
    type: CHANGE_TYPES[change.type],
    size: BigInt(Math.trunc(change.size)),
  };
}

/** A diff that no message can hold is as one of a file that is too large: empty. */
export function diffMessage(diff: FileDiff, roomBytes: number): MessageInitShape<typeof FileDiffSchema> {
  const fits = Buffer.byteLength(diff.unified) <= roomBytes;
  return { change: changeMessage(diff.change), unified: fits ? diff.unified : "", binary: diff.binary };
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
