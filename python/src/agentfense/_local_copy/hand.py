"""Does what was decided. Content goes to a temporary name first: a path has the old or the new one, never half."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Callable, Dict, Generator, Iterator, Optional, Sequence, Tuple
from uuid import uuid4

from agentfense._directory import Directory
from agentfense._local_copy.entry import LocalEntry
from agentfense._local_copy.writing import Content
from agentfense.types import EntryKind, ManifestEntry

_PERMISSION_BITS = 0o777
_CHANGED = "it changed here meanwhile"


@dataclass(frozen=True)
class Installation:
    """What is to come to a path, or to go from it."""

    path: str
    top: Directory
    #: The names of the directories on the way, and its own.
    parents: Sequence[str]
    name: str
    #: None: nothing is to be there.
    wanted: Optional[ManifestEntry]
    #: What was found there.
    local: Optional[LocalEntry]
    #: It is still what was found, and the way to it leads to this directory.
    is_still: Callable[[Directory], bool]


class Hand:
    """Writes below a directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        #: Set in the end: a directory may end up unwritable.
        self._directory_modes: Dict[Tuple[str, ...], int] = {}

    def is_gone(self, path: str) -> bool:
        """Already, though it still shows."""
        return False

    def will_be_directory(self, path: str) -> bool:
        """Already, though it does not show yet."""
        return False

    def is_empty(self, path: str, names: Sequence[bytes]) -> bool:
        """Whether a directory with these names in it holds nothing."""
        return len(names) == 0

    def make_parents(self, top: Directory, parents: Sequence[str]) -> Iterator[str]:
        """The missing directories on the way; tells which."""
        for depth, name in enumerate(parents):
            with top.below(parents[:depth]) as here, suppress(FileExistsError):
                here.make_directory(name)
                yield "/".join(parents[: depth + 1])

    def install(self, installation: Installation) -> Generator[Content, None, Optional[str]]:
        """Gives the reason why it was not done, if there is one."""
        with installation.top.below(installation.parents) as parent:
            wanted = installation.wanted
            if wanted is None:
                return _remove(parent, installation)
            if wanted.kind is EntryKind.DIRECTORY:
                problem = _make_directory(parent, installation)
                if problem is None:
                    self.set_mode(parent, installation.name, wanted)
                return problem
            return (yield from _put(parent, installation, wanted))

    def set_mode(self, parent: Directory, name: str, wanted: ManifestEntry) -> None:
        """Of something that is already what it is to be."""
        if wanted.kind is EntryKind.DIRECTORY:
            self._directory_modes[tuple(wanted.path.split("/"))] = mode_of(wanted)
        elif wanted.kind is EntryKind.FILE:
            _change_mode(parent.open_file(name), mode_of(wanted))

    def finish(self) -> None:
        """The modes of directories, the deepest first."""
        for names, mode in reversed(list(self._directory_modes.items())):
            # One that is gone or is somebody else's by now keeps what it has.
            with suppress(OSError), Directory.open(self._directory) as top, top.below(names) as opened:
                _change_mode(opened.open_file("."), mode)


class Rehearsal(Hand):
    """Does nothing, and remembers what it would have done."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self._gone: set[str] = set()
        self._directories: set[str] = set()

    def is_gone(self, path: str) -> bool:
        return path in self._gone or self._is_below_new(path)

    def will_be_directory(self, path: str) -> bool:
        return path in self._directories or self._is_below_new(path)

    def is_empty(self, path: str, names: Sequence[bytes]) -> bool:
        return all(f"{path}/{name.decode('utf-8', 'surrogateescape')}" in self._gone for name in names)

    def make_parents(self, top: Directory, parents: Sequence[str]) -> Iterator[str]:
        return iter(())

    def install(self, installation: Installation) -> Generator[Content, None, Optional[str]]:
        if installation.wanted is None:
            self._gone.add(installation.path)
        elif installation.wanted.kind is EntryKind.DIRECTORY:
            self._directories.add(installation.path)
        yield from ()
        return None

    def set_mode(self, parent: Directory, name: str, wanted: ManifestEntry) -> None:
        pass

    def finish(self) -> None:
        pass

    def _is_below_new(self, path: str) -> bool:
        names = path.split("/")
        return any("/".join(names[:depth]) in self._directories for depth in range(1, len(names)))


def mode_of(entry: ManifestEntry) -> int:
    """Permission bits, never more than those."""
    if entry.mode is None:
        return 0o755 if entry.kind is EntryKind.DIRECTORY else 0o644
    return entry.mode & _PERMISSION_BITS


def _remove(parent: Directory, installation: Installation) -> Optional[str]:
    if not installation.is_still(parent):
        return _CHANGED
    if installation.local is not None and installation.local.kind is EntryKind.DIRECTORY:
        parent.remove_directory(installation.name)
    else:
        parent.unlink(installation.name)
    return None


def _make_directory(parent: Directory, installation: Installation) -> Optional[str]:
    if not installation.is_still(parent):
        return _CHANGED
    if installation.local is not None:
        parent.unlink(installation.name)
    parent.make_directory(installation.name, 0o700)
    return None


def _put(
    parent: Directory, installation: Installation, wanted: ManifestEntry
) -> Generator[Content, None, Optional[str]]:
    temporary = f".agentfense-{uuid4()}.tmp"
    local = installation.local
    try:
        if wanted.kind is EntryKind.SYMLINK:
            parent.make_link(temporary, wanted.target)
        else:
            yield from _write_file(parent, temporary, wanted)
        if not installation.is_still(parent):
            return _CHANGED
        if local is not None and local.kind is EntryKind.DIRECTORY:
            parent.remove_directory(installation.name)
        parent.rename(temporary, installation.name)
        return None
    finally:
        with suppress(FileNotFoundError):
            parent.unlink(temporary)


def _write_file(parent: Directory, temporary: str, wanted: ManifestEntry) -> Generator[Content, None, None]:
    file = parent.open_file(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    content = Content(wanted.path, os.fdopen(file, "wb"))
    try:
        yield content
    finally:
        sha256 = content.finish()
    if content.error is not None:
        raise content.error
    if sha256 != wanted.sha256:
        raise ValueError("what arrived is not what the codebase has")
    _change_mode(parent.open_file(temporary), mode_of(wanted))


def _change_mode(file: int, mode: int) -> None:
    """Of an open file or directory, which is closed."""
    try:
        if os.fstat(file).st_mode & _PERMISSION_BITS != mode:
            os.chmod(file, mode)
    finally:
        os.close(file)
