"""Everything below a directory that is to be uploaded."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass, field
from typing import Iterator, List, Optional, Sequence, Tuple

from agentfense._directory import Directory
from agentfense._upload.content import content_changed
from agentfense._upload.entry import Entry
from agentfense._upload.ignore_rules import IgnoreRules
from agentfense.types import EntryKind

_NO_ACCESS = (errno.EACCES, errno.EPERM)


@dataclass(frozen=True)
class Walk:
    """What was found."""

    #: A directory before what is in it; files without hashes.
    entries: List[Entry] = field(default_factory=list)
    #: Directories and links that could not be read.
    unreadable: List[str] = field(default_factory=list)
    #: What no codebase can hold, each with the reason.
    unsuitable: List[str] = field(default_factory=list)


def walk(top: str, *, ignore_files: bool, ignore: Sequence[str], include_git: bool) -> Walk:
    """Links are never followed: one that takes the place of a directory meanwhile is an error."""
    with Directory.open(top) as opened:
        walking = _Walking(top, opened, ignore_files, include_git)
        walking.run(IgnoreRules.of(ignore))
    return walking.found


class _Walking:
    def __init__(self, top: str, opened: Directory, ignore_files: bool, include_git: bool) -> None:
        self.found = Walk()
        self._top = top
        self._opened = opened
        self._ignore_files = ignore_files
        self._include_git = include_git

    def run(self, rules: IgnoreRules) -> None:
        """Depth first. Directories are not held open on the way down: there can be more of them than descriptors."""
        under_way = [self._enter("", rules)]
        while under_way:
            step = next(under_way[-1], None)
            if step is None:
                under_way.pop()
            else:
                under_way.append(self._enter(*step))

    def _enter(self, directory: str, outer: IgnoreRules) -> Iterator[Tuple[str, IgnoreRules]]:
        """Notes what is in a directory, and gives the directories among it when their turn comes."""
        listed = self._list(directory, outer)
        if listed is None:
            return
        entries, rules = listed
        for entry in entries:
            self.found.entries.append(entry)
            if entry.kind is EntryKind.DIRECTORY:
                yield entry.path, rules

    def _list(self, directory: str, outer: IgnoreRules) -> Optional[Tuple[List[Entry], IgnoreRules]]:
        try:
            with self._opened.below(directory.split("/") if directory else ()) as opened:
                rules = outer.enter(opened, directory) if self._ignore_files else outer
                looks = (self._look(opened, directory, name, rules) for name in opened.names())
                return [entry for entry in looks if entry is not None], rules
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise content_changed(directory or ".") from error
            self._excuse(error, directory)
            return None

    def _look(self, parent: Directory, directory: str, encoded: bytes, rules: IgnoreRules) -> Optional[Entry]:
        if encoded == b".git" and not self._include_git:
            return None
        shown = encoded.decode("utf-8", "replace")
        path = f"{directory}/{shown}" if directory else shown
        if shown.encode() != encoded:
            self.found.unsuitable.append(f"{path}: its name is not UTF-8")
            return None
        try:
            status = parent.status(shown)
            if rules.ignores(path, is_directory=stat.S_ISDIR(status.st_mode)):
                return None
            return self._entry(parent, shown, path, status)
        except OSError as error:
            self._excuse(error, path)
            return None

    def _entry(self, parent: Directory, name: str, path: str, status: os.stat_result) -> Optional[Entry]:
        mode = status.st_mode & 0o777
        if stat.S_ISDIR(status.st_mode):
            return Entry(path, EntryKind.DIRECTORY, mode, top=self._top)
        if stat.S_ISREG(status.st_mode):
            return Entry(path, EntryKind.FILE, mode, size=status.st_size, top=self._top)
        if not stat.S_ISLNK(status.st_mode):
            self.found.unsuitable.append(f"{path}: is neither a file, a directory nor a link")
            return None
        try:
            return Entry(path, EntryKind.SYMLINK, target=parent.link_target(name).decode(), top=self._top)
        except UnicodeDecodeError:
            self.found.unsuitable.append(f"{path}: its target is not UTF-8")
            return None

    def _excuse(self, error: OSError, path: str) -> None:
        """Gone in the meantime is as good as never there; what may not be read is for the caller to decide about."""
        if error.errno == errno.ENOENT:
            return
        if error.errno not in _NO_ACCESS:
            raise error
        self.found.unreadable.append(path or ".")
