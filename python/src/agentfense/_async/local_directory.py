"""The directory of this machine that a codebase was uploaded from."""

from __future__ import annotations

from dataclasses import replace
from typing import List

from agentfense._async.client import AsyncSandboxClient
from agentfense._face.async_face import run_blocking
from agentfense._local_copy import Content, ListingStep, LocalCopy, changed_paths, plan_listing, wanted_entries
from agentfense.exceptions import CodebaseError, SandboxError
from agentfense.types import ApplyResult, FileInfo


class AsyncLocalDirectory:
    """Fetches what was applied to the codebase, for the local copy to write."""

    def __init__(self, client: AsyncSandboxClient, codebase_id: str, copy: LocalCopy) -> None:
        self._client = client
        self._codebase_id = codebase_id
        self._copy = copy

    async def follow(self, applied: ApplyResult) -> ApplyResult:
        """Has the directory follow what was applied to the codebase; gives what became of each change in both."""
        paths = changed_paths(applied.outcomes)
        if not paths:
            return applied
        listed: List[FileInfo] = []
        for step in plan_listing(paths):
            listed += await self._list(step, applied.version)
        writing = self._copy.write(applied.outcomes, wanted_entries(listed, paths))
        try:
            content = await run_blocking(writing.next_content)
            while content is not None:
                await self._fetch(content, applied.version)
                content = await run_blocking(writing.next_content)
        finally:
            await run_blocking(writing.close)
        return replace(applied, outcomes=tuple(writing.outcomes))

    async def rehearse(self, planned: ApplyResult) -> ApplyResult:
        """Tells the same for changes that would be applied."""
        outcomes = await run_blocking(self._copy.rehearse, planned.outcomes)
        return replace(planned, outcomes=tuple(outcomes))

    async def _list(self, step: ListingStep, version: int) -> List[FileInfo]:
        try:
            return await self._client.list_files(self._codebase_id, step.path, step.recursive, version=version)
        except CodebaseError as error:
            # A directory that is gone, or is none any more, has nothing in it.
            if error.code not in ("FILE_NOT_FOUND", "FILE_WRONG_KIND"):
                raise
            return []

    async def _fetch(self, content: Content, version: int) -> None:
        try:
            async for piece in self._client.download_stream(self._codebase_id, content.path, version=version):
                await run_blocking(content.write, piece)
        except SandboxError as error:
            content.fail(error)
        except OSError as error:
            # A full disk, for one.
            content.fail(error)
