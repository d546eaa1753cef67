# Generated from src/agentfense/_async/client_view.py by scripts/generate_sync.py: change it there.
"""Files of a running sandbox, as a process inside sees them."""

from __future__ import annotations

from typing import Iterator, List, Mapping, Optional

from agentfense._connection.method import SandboxService
from agentfense._messages.codebase import file_info_of
from agentfense._messages.content import data_of
from agentfense._messages.events import file_change_of
from agentfense._messages.numbers import mode_bits, strings
from agentfense._sync.client_base import ClientPart, content_pieces, is_repeatable
from agentfense._sync.client_stream import CallStream
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import ConnectionError
from agentfense.types import Content, FileChange, FileInfo


class ViewMethods(ClientPart):
    """Reading and writing where the rules apply, with the answers that a process inside gets."""

    def read_file(self, sandbox_id: str, path: str) -> CallStream[bytes]:
        """A file in pieces. Nothing is asked for before the first read, which is where errors show."""
        request = sandbox_pb2.ReadFileRequest(sandbox_id=sandbox_id, path=path)
        return CallStream(self._calls.server_stream(SandboxService.read_file, request), data_of)

    def read_file_bytes(self, sandbox_id: str, path: str) -> bytes:
        """A file, all at once."""
        with self.read_file(sandbox_id, path) as pieces:
            return b"".join([piece for piece in pieces])

    def write_file(
        self,
        sandbox_id: str,
        path: str,
        content: Content,
        *,
        mode: Optional[int] = None,
        append: bool = False,
        attributes: Optional[Mapping[str, str]] = None,
        attribute_prefix: str = "",
    ) -> FileInfo:
        """Writes a file, or adds to it.

        Args:
            sandbox_id: Where.
            path: Absolute, or relative to the workspace.
            content: Text, bytes, or an iterable of bytes, which is sent as it comes.
            mode: Permission bits of a new file; default 0o644.
            append: Add to what is there.
            attributes: Extended attributes that it gets, by their names without "user.".
            attribute_prefix: It loses those whose names begin so and that are not given; default: none.
        """
        metadata = sandbox_pb2.WriteFileChunk.Metadata(
            sandbox_id=sandbox_id,
            path=path,
            mode=mode_bits(mode),
            append=append,
            announces_end=True,
            attributes=strings(attributes, "attributes"),
            attribute_prefix=attribute_prefix,
        )

        def requests() -> Iterator[sandbox_pb2.WriteFileChunk]:
            yield sandbox_pb2.WriteFileChunk(metadata=metadata)
            for data in content_pieces(content):
                yield sandbox_pb2.WriteFileChunk(data=data)
            yield sandbox_pb2.WriteFileChunk(end=True)

        # Replacing a file twice is as good as once, adding to it is not.
        repeatable = is_repeatable(content) and not append
        return file_info_of(self._calls.client_stream(SandboxService.write_file, requests, repeatable=repeatable))

    def list_directory(
        self, sandbox_id: str, path: str = "", recursive: bool = False, *, attributes: bool = False
    ) -> List[FileInfo]:
        """What is in a directory, with extended attributes if they are asked for."""
        request = sandbox_pb2.ListDirectoryRequest(
            sandbox_id=sandbox_id, path=path, recursive=recursive, attributes=attributes
        )
        answer = self._calls.unary(SandboxService.list_directory, request)
        return [file_info_of(file, attributes) for file in answer.files]

    def stat_file(self, sandbox_id: str, path: str, *, attributes: bool = False) -> FileInfo:
        """What is at a path, with extended attributes if they are asked for; of a symbolic link, the link."""
        request = sandbox_pb2.StatFileRequest(sandbox_id=sandbox_id, path=path, attributes=attributes)
        return file_info_of(self._calls.unary(SandboxService.stat_file, request), attributes)

    def make_directory(self, sandbox_id: str, path: str, *, recursive: bool = False) -> FileInfo:
        """Makes a directory; when recursive also those on the way, and one that is there is no error."""
        request = sandbox_pb2.MakeDirectoryRequest(sandbox_id=sandbox_id, path=path, recursive=recursive)
        return file_info_of(self._calls.unary(SandboxService.make_directory, request))

    def remove_file(self, sandbox_id: str, path: str, *, recursive: bool = False) -> None:
        """Removes a file, or a directory with all below it when recursive."""
        request = sandbox_pb2.RemoveFileRequest(sandbox_id=sandbox_id, path=path, recursive=recursive)
        self._calls.unary(SandboxService.remove_file, request)

    def move_file(self, sandbox_id: str, source: str, target: str) -> FileInfo:
        """Moves a file or a directory."""
        request = sandbox_pb2.MoveFileRequest(sandbox_id=sandbox_id, from_path=source, to_path=target)
        return file_info_of(self._calls.unary(SandboxService.move_file, request))

    def watch_files(self, sandbox_id: str, path: str = "", *, recursive: bool = False) -> CallStream[FileChange]:
        """What changes, from the moment this returns. Ends when the sandbox stops; closing it ends it before."""
        request = sandbox_pb2.WatchFilesRequest(sandbox_id=sandbox_id, path=path, recursive=recursive)
        answers = self._calls.server_stream(SandboxService.watch_files, request)
        try:
            # The first message says that the watch has begun.
            answers.__next__()
        except StopIteration:
            message = "the server ended the watch before it began"
            raise ConnectionError(message, code="CONNECTION_FAILED") from None
        return CallStream(answers, file_change_of)
