"""What stands at a path, as far as it takes to tell whether it is still the same."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import Optional, Tuple

from agentfense._directory import Directory
from agentfense.types import EntryKind, ManifestEntry

_PIECE_BYTES = 262_144

#: Changes with anything that is done to an entry.
Stamp = Tuple[int, ...]


@dataclass(frozen=True)
class LocalEntry:
    """What is on this machine, where there are also sockets and devices."""

    kind: EntryKind
    stamp: Stamp
    sha256: str = ""
    #: None for a target that is no UTF-8, which no codebase has.
    target: Optional[str] = ""

    def is_same(self, other: ManifestEntry) -> bool:
        """The mode does not count."""
        if self.kind is not other.kind or self.kind is EntryKind.OTHER:
            return False
        if self.kind is EntryKind.FILE:
            return self.sha256 == other.sha256
        return self.kind is EntryKind.DIRECTORY or self.target == other.target


def read_entry(parent: Directory, name: str) -> Optional[LocalEntry]:
    """None where nothing is."""
    try:
        status = parent.status(name)
    except FileNotFoundError:
        return None
    stamp = _stamp_of(status)
    if stat.S_ISDIR(status.st_mode):
        return LocalEntry(EntryKind.DIRECTORY, stamp)
    if stat.S_ISLNK(status.st_mode):
        return LocalEntry(EntryKind.SYMLINK, stamp, target=_text_of(parent.link_target(name)))
    if stat.S_ISREG(status.st_mode):
        return LocalEntry(EntryKind.FILE, stamp, sha256=_hash_file(parent, name))
    return LocalEntry(EntryKind.OTHER, stamp)


def read_stamp(parent: Directory, name: str) -> Optional[Stamp]:
    """None where nothing is."""
    try:
        return _stamp_of(parent.status(name))
    except FileNotFoundError:
        return None


def _stamp_of(status: os.stat_result) -> Stamp:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_mode,
    )


def _text_of(target: bytes) -> Optional[str]:
    try:
        return target.decode()
    except UnicodeDecodeError:
        return None


def _hash_file(parent: Directory, name: str) -> str:
    digest = hashlib.sha256()
    # It may have become something else since it was looked at; then its stamp tells.
    file = parent.open_file(name)
    try:
        for piece in iter(lambda: os.read(file, _PIECE_BYTES), b""):
            digest.update(piece)
    finally:
        os.close(file)
    return digest.hexdigest()
