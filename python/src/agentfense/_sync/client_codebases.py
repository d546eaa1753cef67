# Generated from src/agentfense/_async/client_codebases.py by scripts/generate_sync.py: change it there.
"""Codebases: their files, as they are on the server, and their versions."""

from __future__ import annotations

from typing import Iterable, List, Optional, Tuple

from agentfense._connection.method import CodebaseService
from agentfense._messages.codebase import batch_result_of, codebase_of, file_info_of, version_of
from agentfense._messages.content import data_of
from agentfense._messages.numbers import count
from agentfense._sync.client_base import ClientPart, all_pages
from agentfense._sync.client_stream import CallStream
from agentfense._wire.sandbox.v1 import codebase_pb2
from agentfense.types import BatchResult, Codebase, FileInfo, Version

# Without a size the server answers with all of them in one message, which a large codebase does not fit into.
_FILES_A_PAGE = 1000


class CodebaseMethods(ClientPart):
    """What can be asked about codebases."""

    def create_codebase(self, name: str, owner_id: Optional[str] = None) -> Codebase:
        """Makes a codebase, empty at first.

        With API keys in force the owner is that of the key, and may be absent; without, somebody must be named.
        """
        request = codebase_pb2.CreateCodebaseRequest(name=name, owner_id=owner_id or "")
        return codebase_of(self._calls.unary(CodebaseService.create_codebase, request))

    def get_codebase(self, codebase_id: str) -> Codebase:
        """One codebase."""
        request = codebase_pb2.GetCodebaseRequest(codebase_id=codebase_id)
        return codebase_of(self._calls.unary(CodebaseService.get_codebase, request))

    def list_codebases(self, owner_id: Optional[str] = None) -> List[Codebase]:
        """Those that the caller may see."""

        def fetch(token: str) -> Tuple[Iterable[Codebase], str]:
            request = codebase_pb2.ListCodebasesRequest(owner_id=owner_id or "", page_token=token)
            page = self._calls.unary(CodebaseService.list_codebases, request)
            return map(codebase_of, page.codebases), page.next_page_token

        return all_pages(fetch)

    def delete_codebase(self, codebase_id: str, *, force: bool = False) -> None:
        """Fails while sandboxes use it, unless forced; those sandboxes are then destroyed."""
        request = codebase_pb2.DeleteCodebaseRequest(codebase_id=codebase_id, force=force)
        self._calls.unary(CodebaseService.delete_codebase, request)

    def download_file(self, codebase_id: str, file_path: str, *, version: Optional[int] = None) -> bytes:
        """A file, all at once. Without a version, the newest."""
        with self.download_stream(codebase_id, file_path, version=version) as pieces:
            return b"".join([piece for piece in pieces])

    def download_stream(self, codebase_id: str, file_path: str, *, version: Optional[int] = None) -> CallStream[bytes]:
        """A file in pieces. Nothing is asked for before the first read, which is where errors show."""
        request = codebase_pb2.DownloadFileRequest(
            codebase_id=codebase_id, file_path=file_path, version=count(version, "version")
        )
        return CallStream(self._calls.server_stream(CodebaseService.download_file, request), data_of)

    def download_archive(self, codebase_id: str, path: str = "", *, version: Optional[int] = None) -> CallStream[bytes]:
        """A directory and all below it as a tar archive, in pieces. Without a path, everything."""
        request = codebase_pb2.DownloadArchiveRequest(
            codebase_id=codebase_id, path=path, version=count(version, "version")
        )
        return CallStream(self._calls.server_stream(CodebaseService.download_archive, request), data_of)

    def list_files(
        self, codebase_id: str, path: str = "", recursive: bool = False, *, version: Optional[int] = None
    ) -> List[FileInfo]:
        """The files of a directory of a codebase."""

        def fetch(token: str) -> Tuple[Iterable[FileInfo], str]:
            request = codebase_pb2.ListFilesRequest(
                codebase_id=codebase_id,
                path=path,
                recursive=recursive,
                version=count(version, "version"),
                page_size=_FILES_A_PAGE,
                page_token=token,
            )
            page = self._calls.unary(CodebaseService.list_files, request)
            return map(file_info_of, page.files), page.next_page_token

        return all_pages(fetch)

    def delete_file(self, codebase_id: str, path: str, *, recursive: bool = False) -> BatchResult:
        """Removes a file, or a directory with all below it when recursive."""
        request = codebase_pb2.DeleteFileRequest(codebase_id=codebase_id, file_path=path, recursive=recursive)
        return batch_result_of(self._calls.unary(CodebaseService.delete_file, request))

    def rename_file(self, codebase_id: str, source: str, target: str) -> BatchResult:
        """Moves a file or a directory."""
        request = codebase_pb2.RenameFileRequest(codebase_id=codebase_id, from_path=source, to_path=target)
        return batch_result_of(self._calls.unary(CodebaseService.rename_file, request))

    def list_versions(self, codebase_id: str) -> List[Version]:
        """Newest first, without their changes."""

        def fetch(token: str) -> Tuple[Iterable[Version], str]:
            request = codebase_pb2.ListVersionsRequest(codebase_id=codebase_id, page_token=token)
            page = self._calls.unary(CodebaseService.list_versions, request)
            return map(version_of, page.versions), page.next_page_token

        return all_pages(fetch)

    def get_version(self, codebase_id: str, version: int) -> Version:
        """A version with its changes."""
        request = codebase_pb2.GetVersionRequest(codebase_id=codebase_id, version=count(version, "version"))
        return version_of(self._calls.unary(CodebaseService.get_version, request))

    def rollback(self, codebase_id: str, version: int) -> Version:
        """Makes a new version with the content of an old one."""
        request = codebase_pb2.RollbackRequest(codebase_id=codebase_id, version=count(version, "version"))
        return version_of(self._calls.unary(CodebaseService.rollback, request))
