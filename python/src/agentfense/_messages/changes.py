"""What a sandbox changed."""

from __future__ import annotations

from agentfense._messages.words import CHANGE_KINDS, CHANGE_TYPES
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.types import ApplyOutcome, ApplyResult, Change, ChangeCounts, FileDiff


def change_of(message: sandbox_pb2.Change) -> Change:
    """A change of an answer."""
    return Change(
        kind=CHANGE_KINDS.word(message.kind),
        path=message.path,
        old_path=message.old_path,
        type=CHANGE_TYPES.word(message.type),
        size=message.size,
        sensitive=message.sensitive,
        folded=_counts_of(message.folded) if message.HasField("folded") else None,
    )


def _counts_of(message: sandbox_pb2.ChangeCounts) -> ChangeCounts:
    return ChangeCounts(
        added=message.added, modified=message.modified, deleted=message.deleted, renamed=message.renamed
    )


def file_diff_of(message: sandbox_pb2.FileDiff) -> FileDiff:
    """A change, line by line."""
    return FileDiff(change=change_of(message.change), unified=message.unified, binary=message.binary)


def apply_result_of(message: sandbox_pb2.ApplyChangesResponse) -> ApplyResult:
    """What became of each change."""
    return ApplyResult(
        version=message.version,
        outcomes=tuple(
            ApplyOutcome(
                change=change_of(outcome.change),
                applied=outcome.applied,
                reason=outcome.reason,
                sensitive=outcome.sensitive,
                conflict=outcome.conflict,
            )
            for outcome in message.outcomes
        ),
    )
