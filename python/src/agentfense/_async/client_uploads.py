"""Content on its way into a codebase."""

from __future__ import annotations

import os
from typing import AsyncIterator, Callable, Iterable, Iterator, List, Optional, Sequence, Set, Union

from agentfense._async.client_base import AsyncClientPart, content_pieces, is_repeatable
from agentfense._connection.method import CodebaseService
from agentfense._face.async_face import called_here, iterate, run_blocking
from agentfense._messages.batch import batch_chunks, content_bytes
from agentfense._messages.codebase import batch_result_of, upload_result_of
from agentfense._messages.manifest import in_messages, manifest_message
from agentfense._messages.numbers import count, mode_bits
from agentfense._upload import Entry, Selection, read_content, select_entries
from agentfense._wire.sandbox.v1 import codebase_pb2
from agentfense.types import (
    BatchEntry,
    BatchResult,
    Content,
    DirectoryUploadResult,
    EntryKind,
    ManifestEntry,
    UploadProgress,
    UploadResult,
)

ProgressCallback = Callable[[UploadProgress], None]


class AsyncUploadMethods(AsyncClientPart):
    """The ways to change the files of a codebase. Each upload is one version, all or nothing."""

    async def upload_file(
        self,
        codebase_id: str,
        file_path: str,
        content: Content,
        *,
        mode: Optional[int] = None,
        sha256: Optional[str] = None,
    ) -> UploadResult:
        """Writes one file, as a version of its own.

        Args:
            codebase_id: The codebase.
            file_path: Where, relative to its top.
            content: Text, bytes, or an iterable of bytes, which is sent as it comes.
            mode: Permission bits; default: those of the file that is replaced, else 0o644.
            sha256: In hexadecimal; checked against what arrives.
        """
        metadata = codebase_pb2.UploadChunk.Metadata(
            codebase_id=codebase_id,
            file_path=file_path,
            mode=mode_bits(mode),
            checksum=sha256 or "",
            announces_end=True,
        )
        return await self._upload(metadata, content)

    async def upload_symlink(self, codebase_id: str, path: str, target: str) -> UploadResult:
        """Makes a symbolic link. It may point anywhere: it means something inside a sandbox only."""
        metadata = codebase_pb2.UploadChunk.Metadata(
            codebase_id=codebase_id, file_path=path, symlink_target=target, announces_end=True
        )
        return await self._upload(metadata, b"")

    async def upload_directory(
        self,
        codebase_id: str,
        directory: Union[str, os.PathLike[str]],
        *,
        ignore_files: bool = True,
        ignore: Optional[Sequence[str]] = None,
        include_git: bool = False,
        skip_unreadable: bool = False,
        on_progress: Optional[ProgressCallback] = None,
        replace_all: bool = False,
        message: str = "",
        base_version: Optional[int] = None,
    ) -> DirectoryUploadResult:
        """A local directory as one version, all or nothing; only content that the server lacks is sent.

        Args:
            codebase_id: The codebase.
            directory: Where the files are.
            ignore_files: Heed .gitignore and .agentfenseignore.
            ignore: More patterns, as in .gitignore.
            include_git: Take .git too.
            skip_unreadable: Leave out what cannot be read instead of failing.
            on_progress: Sees how far it is.
            replace_all: Remove from the codebase what the directory does not have.
            message: What the version is about.
            base_version: Raise VersionConflictError unless the codebase is at this version.
        """
        progress = None if on_progress is None else called_here(on_progress)

        def select() -> Selection:
            return select_entries(
                directory,
                ignore_files=ignore_files,
                ignore=ignore,
                include_git=include_git,
                skip_unreadable=skip_unreadable,
                on_progress=progress,
            )

        return await self._upload_selection(
            codebase_id,
            await run_blocking(select),
            on_progress=on_progress,
            replace_all=replace_all,
            message=message,
            base_version=base_version,
        )

    async def _upload_selection(
        self,
        codebase_id: str,
        selection: Selection,
        *,
        on_progress: Optional[ProgressCallback] = None,
        replace_all: bool = False,
        message: str = "",
        base_version: Optional[int] = None,
    ) -> DirectoryUploadResult:
        """The same for files that were walked and hashed before."""
        entries = selection.entries
        with_content = [entry for entry in entries if entry.kind is EntryKind.FILE and entry.size > 0]
        missing = set(await self.compare_manifest(codebase_id, with_content))
        bytes_sent = sum(entry.size for entry in with_content if entry.path in missing)
        done_bytes = 0

        def on_bytes(count: int) -> None:
            nonlocal done_bytes
            done_bytes += count
            if on_progress is not None:
                on_progress(UploadProgress("uploading", done_bytes, bytes_sent, len(missing)))

        result = await self.batch_upload(
            codebase_id,
            _with_content(entries, missing),
            replace_all=replace_all,
            message=message,
            base_version=base_version,
            on_bytes=on_bytes,
        )
        return DirectoryUploadResult(
            version=result.version,
            files_changed=result.files_changed,
            bytes_received=result.bytes_received,
            files=sum(entry.kind is not EntryKind.DIRECTORY for entry in entries),
            bytes=sum(entry.size for entry in with_content),
            files_sent=len(missing),
            bytes_sent=bytes_sent,
            left_out=tuple(selection.left_out),
        )

    async def compare_manifest(self, codebase_id: str, entries: Iterable[ManifestEntry]) -> List[str]:
        """The paths of those entries whose content the server needs to be sent."""
        missing: List[str] = []
        for group in in_messages(entries):
            request = codebase_pb2.CompareManifestRequest(
                codebase_id=codebase_id, entries=[manifest_message(entry) for entry in group]
            )
            missing += (await self._calls.unary(CodebaseService.compare_manifest, request)).missing
        return missing

    async def batch_upload(
        self,
        codebase_id: str,
        entries: Iterable[ManifestEntry],
        *,
        replace_all: bool = False,
        base_version: Optional[int] = None,
        message: str = "",
        on_bytes: Optional[Callable[[int], object]] = None,
    ) -> BatchResult:
        """Many files as one version, all or nothing.

        Args:
            codebase_id: The codebase.
            entries: BatchEntry where there is content to be sent. They are taken one by one, in another thread.
            replace_all: Remove everything that no entry names.
            base_version: Raise VersionConflictError unless the codebase is at this version.
            message: What the version is about.
            on_bytes: Sees content that is on its way, as it is sent.
        """
        begin = codebase_pb2.BatchUploadChunk.Begin(
            codebase_id=codebase_id,
            replace_all=replace_all,
            message=message,
            base_version=count(base_version, "base_version"),
        )

        async def requests() -> AsyncIterator[codebase_pb2.BatchUploadChunk]:
            async for chunk in iterate(batch_chunks(begin, entries)):
                if on_bytes is not None and content_bytes(chunk) > 0:
                    on_bytes(content_bytes(chunk))
                yield chunk

        result = await self._calls.client_stream(CodebaseService.batch_upload, requests, repeatable=False)
        return batch_result_of(result)

    async def upload_archive(
        self, codebase_id: str, tar: Content, *, replace_all: bool = False, message: str = ""
    ) -> BatchResult:
        """A tar archive as one version, all or nothing."""
        metadata = codebase_pb2.ArchiveChunk.Metadata(
            codebase_id=codebase_id, replace_all=replace_all, message=message, announces_end=True
        )

        async def requests() -> AsyncIterator[codebase_pb2.ArchiveChunk]:
            yield codebase_pb2.ArchiveChunk(metadata=metadata)
            async for data in content_pieces(tar):
                yield codebase_pb2.ArchiveChunk(data=data)
            yield codebase_pb2.ArchiveChunk(end=True)

        result = await self._calls.client_stream(CodebaseService.upload_archive, requests, repeatable=False)
        return batch_result_of(result)

    async def _upload(self, metadata: codebase_pb2.UploadChunk.Metadata, content: Content) -> UploadResult:
        async def requests() -> AsyncIterator[codebase_pb2.UploadChunk]:
            yield codebase_pb2.UploadChunk(metadata=metadata)
            async for data in content_pieces(content):
                yield codebase_pb2.UploadChunk(data=data)
            # Without it an upload that is given up could be taken for complete.
            yield codebase_pb2.UploadChunk(end=True)

        repeatable = is_repeatable(content)
        return upload_result_of(
            await self._calls.client_stream(CodebaseService.upload_files, requests, repeatable=repeatable)
        )


def _with_content(entries: Iterable[Entry], missing: Set[str]) -> Iterator[ManifestEntry]:
    """All of the entries, and content only where the server lacks it, read when its turn comes."""
    for entry in entries:
        if entry.path not in missing:
            yield entry
        else:
            yield BatchEntry(
                path=entry.path,
                kind=entry.kind,
                mode=entry.mode,
                size=entry.size,
                sha256=entry.sha256,
                target=entry.target,
                content=read_content(entry),
            )
