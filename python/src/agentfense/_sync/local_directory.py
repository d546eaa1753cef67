# Generated from src/agentfense/_async/local_directory.py by scripts/generate_sync.py: change it there.
"""The directory of this machine that a codebase was uploaded from."""

from __future__ import annotations

from dataclasses import replace
from typing import List

from agentfense._face.sync_face import run_blocking
from agentfense._local_copy import Content, ListingStep, LocalCopy, changed_paths, plan_listing, wanted_entries
from agentfense._sync.client import SandboxClient
from agentfense.exceptions import CodebaseError, SandboxError
from agentfense.types import ApplyResult, FileInfo


class LocalDirectory:
    """Fetches what was applied to the codebase, for the local copy to write."""

    def __init__(self, client: SandboxClient, codebase_id: str, copy: LocalCopy) -> None:
        self._client = client
        self._codebase_id = codebase_id
        self._copy = copy

    def follow(self, applied: ApplyResult) -> ApplyResult:
        """Has the directory follow what was applied to the codebase; gives what became of each change in both."""
        paths = changed_paths(applied.outcomes)
        if not paths:
            return applied
        listed: List[FileInfo] = []
        for step in plan_listing(paths):
            listed += self._list(step, applied.version)
        writing = self._copy.write(applied.outcomes, wanted_entries(listed, paths))
        try:
            content = run_blocking(writing.next_content)
            while content is not None:
                self._fetch(content, applied.version)
                content = run_blocking(writing.next_content)
        finally:
            run_blocking(writing.close)
        return replace(applied, outcomes=tuple(writing.outcomes))

    def rehearse(self, planned: ApplyResult) -> ApplyResult:
        """Tells the same for changes that would be applied."""
        outcomes = run_blocking(self._copy.rehearse, planned.outcomes)
        return replace(planned, outcomes=tuple(outcomes))

    def _list(self, step: ListingStep, version: int) -> List[FileInfo]:
        try:
            return self._client.list_files(self._codebase_id, step.path, step.recursive, version=version)
        except CodebaseError as error:
            # A directory that is gone, or is none any more, has nothing in it.
            if error.code not in ("FILE_NOT_FOUND", "FILE_WRONG_KIND"):
                raise
            return []

    def _fetch(self, content: Content, version: int) -> None:
        try:
            for piece in self._client.download_stream(self._codebase_id, content.path, version=version):
                run_blocking(content.write, piece)
        except SandboxError as error:
            content.fail(error)
        except OSError as error:
            # A full disk, for one.
            content.fail(error)
