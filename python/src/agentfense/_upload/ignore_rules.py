"""What ignore files say about paths."""

from __future__ import annotations

import errno
import os
import stat
from typing import Iterable, List, Optional, Sequence, Tuple

from agentfense._directory import Directory
from agentfense._upload.ignore_pattern import IgnorePattern, read_patterns

#: Read in this order: what the second says about a name wins over the first.
_IGNORE_FILES = (".gitignore", ".agentfenseignore")
_LARGEST_IGNORE_FILE = 1_048_576

#: The path of a directory with a slash at the end, "" for the top, and the patterns that count below it, last first.
_Level = Tuple[str, Sequence[IgnorePattern]]


class IgnoreRules:
    """The ignore files on the way to a directory. As with git, the nearest one that has something to say decides."""

    def __init__(self, own: Sequence[_Level], files: Sequence[_Level]) -> None:
        #: Somebody's own rules, which are asked before all files.
        self._own = own
        #: The nearest first.
        self._files = files

    @classmethod
    def of(cls, patterns: Iterable[str]) -> IgnoreRules:
        """Rules without a file, relative to the top."""
        return cls(_level("", ["\n".join(patterns).encode("utf-8", "surrogateescape")]), ())

    def enter(self, opened: Directory, directory: str) -> IgnoreRules:
        """These rules and those of a directory below, whose path is relative to the top ("" is the top itself)."""
        texts = [text for text in (_read_ignore_file(opened, name) for name in _IGNORE_FILES) if text is not None]
        level = _level(f"{directory}/" if directory else "", texts)
        return IgnoreRules(self._own, [*level, *self._files]) if level else self

    def ignores(self, path: str, *, is_directory: bool) -> bool:
        """Whoever is ignored as a directory is not entered, so that nothing below it can come back."""
        encoded = path.encode()
        name = encoded[encoded.rfind(b"/") + 1 :]
        for base, patterns in (*self._own, *self._files):
            relative = encoded[len(base.encode()) :]
            for pattern in patterns:
                if (is_directory or not pattern.only_directories) and pattern.matches(relative, name):
                    return not pattern.negated
        return False


def _level(base: str, texts: Iterable[bytes]) -> List[_Level]:
    patterns = [pattern for text in texts for pattern in read_patterns(text)]
    return [(base, patterns[::-1])] if patterns else []


def _read_ignore_file(opened: Directory, name: str) -> Optional[bytes]:
    """Not through a link: as git, which wants to find them where they are.

    Absent, unreadable or absurd ones say nothing.
    """
    try:
        file = opened.open_file(name)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EACCES):
            return None
        raise
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_IGNORE_FILE:
            return None
        with os.fdopen(file, "rb", closefd=False) as content:
            return content.read()
    finally:
        os.close(file)
