"""A directory that is held open, so that nobody can put another one in its place. No link is ever followed."""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType
from typing import Iterable, List, Optional, Tuple, Type, Union

from typing_extensions import Self

#: Elsewhere (Windows) directories cannot be held open, and paths are looked up anew each time.
_CAN_HOLD = {os.open, os.stat, os.mkdir, os.rename, os.unlink, os.rmdir, os.symlink, os.readlink} <= os.supports_dir_fd

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW | _CLOEXEC
#: A pipe in the place of a file does not make us wait for its other end.
_FILE = _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | _CLOEXEC


class Directory:
    """Names are texts without slashes, and stand for what is in here and nowhere else."""

    def __init__(self, descriptor: Optional[int], path: bytes) -> None:
        self._descriptor = descriptor
        self._path = path

    @classmethod
    def open(cls, path: Union[str, bytes]) -> Self:
        """The directory at a path that somebody trusts: links on the way are followed."""
        encoded = os.fsencode(path)
        if not _CAN_HOLD:
            _require_directory(os.stat(encoded), encoded)
            return cls(None, encoded)
        return cls(os.open(encoded, _DIRECTORY & ~_NOFOLLOW), encoded)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def directory(self, name: str) -> Directory:
        """The directory of that name. A link to one is ENOTDIR."""
        place, held = self._place(name)
        if held is None:
            _require_directory(os.lstat(place), place)
            return Directory(None, place)
        return Directory(os.open(place, _DIRECTORY, dir_fd=held), place)

    def below(self, names: Iterable[str]) -> Directory:
        """The directory at the end of a way of names. A link anywhere on it is ENOTDIR."""
        here = self.directory(".")
        for name in names:
            with here:
                here = here.directory(name)
        return here

    def names(self) -> List[bytes]:
        """What is in it, in the order of their bytes; these need not be texts."""
        return sorted(map(os.fsencode, os.listdir(self._path if self._descriptor is None else self._descriptor)))

    def status(self, name: str) -> os.stat_result:
        """Of what goes by that name, be it a link."""
        place, held = self._place(name)
        return os.stat(place, dir_fd=held, follow_symlinks=False)

    def link_target(self, name: str) -> bytes:
        """Where a link leads; need not be a text."""
        place, held = self._place(name)
        return os.readlink(place, dir_fd=held)

    def open_file(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
        """A descriptor. What is opened for reading can be anything but a link: whoever wants a file has to look."""
        place, held = self._place(name)
        return os.open(place, flags | _FILE, mode, dir_fd=held)

    def make_directory(self, name: str, mode: int = 0o777) -> None:
        """EEXIST where anything has that name."""
        place, held = self._place(name)
        os.mkdir(place, mode, dir_fd=held)

    def make_link(self, name: str, target: str) -> None:
        """EEXIST where anything has that name. The target may lead anywhere."""
        place, held = self._place(name)
        os.symlink(os.fsencode(target) if held is None else target.encode(), place, dir_fd=held)

    def rename(self, name: str, new_name: str) -> None:
        """Replaces a file or a link of the new name."""
        old, held = self._place(name)
        new, _ = self._place(new_name)
        os.replace(old, new, src_dir_fd=held, dst_dir_fd=held)

    def remove_directory(self, name: str) -> None:
        """ENOTEMPTY for one that holds something."""
        place, held = self._place(name)
        os.rmdir(place, dir_fd=held)

    def unlink(self, name: str) -> None:
        """The name itself: of a link, not what it leads to."""
        place, held = self._place(name)
        os.unlink(place, dir_fd=held)

    def _place(self, name: str) -> Tuple[bytes, Optional[int]]:
        """Names are UTF-8 whatever the locale of this process is."""
        encoded = name.encode()
        if self._descriptor is None:
            return os.path.join(self._path, encoded), None
        return encoded, self._descriptor


def _require_directory(status: os.stat_result, path: bytes) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fsdecode(path))
