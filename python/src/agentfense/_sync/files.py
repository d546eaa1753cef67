# Generated from src/agentfense/_async/files.py by scripts/generate_sync.py: change it there.
"""The files of a running sandbox."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, List, Mapping, Optional, Union, overload

from typing_extensions import Literal

from agentfense._sandbox.workspace_path import names_in, workspace_path
from agentfense._sync.client import SandboxClient
from agentfense._sync.file_watch import FileWatch
from agentfense.exceptions import FileNotFoundError, InvalidConfigurationError
from agentfense.types import Content, FileInfo


class SandboxFiles:
    """The files of a running sandbox as a process inside sees them, by well-known names: the rules apply.

    Paths are those of the workspace: "/workspace/src", "/src" and "src" are the same. Links are followed inside the
    workspace only. `sandbox.files` is one.
    """

    def __init__(self, client: SandboxClient, sandbox_id: str) -> None:
        self._client = client
        self._sandbox_id = sandbox_id

    @overload
    def read_file(self, path: str, encoding: None = None) -> bytes: ...

    @overload
    def read_file(self, path: str, encoding: str) -> str: ...

    def read_file(self, path: str, encoding: Optional[str] = None) -> Union[bytes, str]:
        """Gives all of a file: its bytes, or with an encoding its text."""
        content = self._client.read_file_bytes(self._sandbox_id, workspace_path(path))
        return content if encoding is None else content.decode(encoding)

    def read_stream(self, path: str) -> Iterator[bytes]:
        """Gives a file in pieces. Errors show with the first one."""
        return self._client.read_file(self._sandbox_id, workspace_path(path))

    def write_file(
        self,
        path: str,
        content: Content,
        *,
        mode: Optional[int] = None,
        flag: Literal["w", "a"] = "w",
        attributes: Optional[Mapping[str, str]] = None,
        attribute_prefix: str = "",
    ) -> None:
        """Writes a file.

        Args:
            path: Its directory has to be there.
            content: Text (UTF-8), bytes, or pieces of bytes, which are sent as they come.
            mode: Permission bits of a new file; default 0o644.
            flag: "w" replaces what is there, "a" adds to it.
            attributes: Extended attributes that it gets, by their names without "user.".
            attribute_prefix: It loses those whose names begin so and that are not given; default: none.
        """
        if flag not in ("w", "a"):
            raise InvalidConfigurationError(f'the flag is "w" or "a", not {flag!r}')
        self._client.write_file(
            self._sandbox_id,
            workspace_path(path),
            content,
            mode=mode,
            append=flag == "a",
            attributes=attributes,
            attribute_prefix=attribute_prefix,
        )

    def append_file(self, path: str, content: Content, *, mode: Optional[int] = None) -> None:
        """Adds to the end of a file, which is made if it is not there."""
        self.write_file(path, content, mode=mode, flag="a")

    @overload
    def readdir(self, path: str, *, recursive: bool = False, with_file_types: Literal[False] = False) -> List[str]: ...

    @overload
    def readdir(
        self, path: str, *, recursive: bool = False, with_file_types: Literal[True], attributes: bool = False
    ) -> List[FileInfo]: ...

    def readdir(
        self, path: str, *, recursive: bool = False, with_file_types: bool = False, attributes: bool = False
    ) -> Union[List[str], List[FileInfo]]:
        """Gives what is in a directory: names, "a/b" when recursive; or what is known of each."""
        entries = self._client.list_directory(
            self._sandbox_id, workspace_path(path), recursive=recursive, attributes=attributes
        )
        if with_file_types:
            return [_from_workspace(entry) for entry in entries]
        depth = len(names_in(workspace_path(path)))
        return ["/".join(names_in(entry.path)[depth:]) for entry in entries]

    def stat(self, path: str, *, attributes: bool = False) -> FileInfo:
        """Gives what is known of a path, with extended attributes if asked for; of a symbolic link, the link."""
        found = self._client.stat_file(self._sandbox_id, workspace_path(path), attributes=attributes)
        return _from_workspace(found)

    def mkdir(self, path: str, *, recursive: bool = False) -> None:
        """Makes a directory; when recursive also those on the way, and one that is there is no error."""
        self._client.make_directory(self._sandbox_id, workspace_path(path), recursive=recursive)

    def rm(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        """Removes a file, or a directory with all below it when recursive.

        With force, what is not there is no error.
        """
        try:
            self._client.remove_file(self._sandbox_id, workspace_path(path), recursive=recursive)
        except FileNotFoundError:
            if not force:
                raise

    def rename(self, source: str, target: str) -> None:
        """Moves a file or a directory."""
        self._client.move_file(self._sandbox_id, workspace_path(source), workspace_path(target))

    def watch(self, path: str, *, recursive: bool = False) -> FileWatch:
        """Watches what changes at a path. It is on when the `with` block of what this gives was entered."""
        place = workspace_path(path)
        return FileWatch(lambda: self._client.watch_files(self._sandbox_id, place, recursive=recursive))


def _from_workspace(info: FileInfo) -> FileInfo:
    return replace(info, path="/" + "/".join(names_in(info.path)))
