# Generated from src/agentfense/_async/client_changes.py by scripts/generate_sync.py: change it there.
"""What a sandbox changed and has not synced."""

from __future__ import annotations

from typing import Iterable, List, Optional, Sequence, Tuple

from agentfense._connection.method import SandboxService
from agentfense._messages.changes import apply_result_of, change_of, file_diff_of
from agentfense._sync.client_base import ClientPart, all_pages
from agentfense._sync.client_stream import Answers, CallStream
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.types import ApplyResult, Change, FileDiff

# Without a size the server answers with all of them in one message, which a long list does not fit into.
_CHANGES_A_PAGE = 1000


class ChangeMethods(ClientPart):
    """Looking at changes, and deciding about them. Each path stands for all below it.

    Without paths it is about everything, with an empty list about nothing. On the wire none means everything, so an
    empty list must not get there: it is what is left of a review that approved nothing.
    """

    def list_changes(self, sandbox_id: str, *, fold: bool = False) -> List[Change]:
        """In path order.

        With `fold`, for people: directory by directory, and what the codebase's `.gitignore` files name as one item for
        each directory of it, behind everything else.
        """

        def fetch(token: str) -> Tuple[Iterable[Change], str]:
            request = sandbox_pb2.ListChangesRequest(
                sandbox_id=sandbox_id, page_size=_CHANGES_A_PAGE, page_token=token, fold=fold
            )
            page = self._calls.unary(SandboxService.list_changes, request)
            return map(change_of, page.changes), page.next_page_token

        return all_pages(fetch)

    def diff_changes(
        self, sandbox_id: str, paths: Optional[Sequence[str]] = None, *, patch: bool = False
    ) -> CallStream[FileDiff]:
        """The same as unified diffs, one after the other; with `patch`, complete enough for `git apply`."""
        if _is_empty(paths):
            return CallStream.empty()
        request = sandbox_pb2.DiffChangesRequest(sandbox_id=sandbox_id, paths=paths or (), patch=patch)
        answers = self._calls.server_stream(SandboxService.diff_changes, request)
        return CallStream(_WholeDiffs(answers), file_diff_of)

    def apply_changes(
        self,
        sandbox_id: str,
        paths: Optional[Sequence[str]] = None,
        *,
        dry_run: bool = False,
        hold_executables: bool = False,
    ) -> ApplyResult:
        """Writes changes into the codebase as a new version, as far as the rules allow.

        With `hold_executables`, what the host may run or trust without being asked to stays where it is.
        """
        if _is_empty(paths):
            return ApplyResult(version=0, outcomes=())
        request = sandbox_pb2.ApplyChangesRequest(
            sandbox_id=sandbox_id, paths=paths or (), dry_run=dry_run, hold_executables=hold_executables
        )
        return apply_result_of(self._calls.unary(SandboxService.apply_changes, request))

    def discard_changes(self, sandbox_id: str, paths: Optional[Sequence[str]] = None) -> List[Change]:
        """Undoes changes, and tells which."""
        if _is_empty(paths):
            return []
        request = sandbox_pb2.DiscardChangesRequest(sandbox_id=sandbox_id, paths=paths or ())
        answer = self._calls.unary(SandboxService.discard_changes, request)
        return [change_of(change) for change in answer.discarded]


class _WholeDiffs:
    """The messages of one diff as one."""

    def __init__(self, answers: Answers[sandbox_pb2.FileDiff]) -> None:
        self._answers = answers

    def __next__(self) -> sandbox_pb2.FileDiff:
        diff = self._answers.__next__()
        texts = [diff.unified]
        more = diff.more
        while more:
            piece = self._answers.__next__()
            texts.append(piece.unified)
            more = piece.more
        return sandbox_pb2.FileDiff(change=diff.change, unified="".join(texts), binary=diff.binary)

    def close(self) -> None:
        self._answers.close()


def _is_empty(paths: Optional[Sequence[str]]) -> bool:
    return paths is not None and len(paths) == 0
