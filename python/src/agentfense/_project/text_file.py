"""Texts of files that were merely found, and may come from strangers."""

from __future__ import annotations

import os
import stat

#: No rules of a person are longer.
_LARGEST_FILE = 1_048_576
# Should it be swapped after the look: a link fails to open, and a pipe does not make us wait.
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class TextFileError(Exception):
    """A file that is not what was expected; other failures are the system's own errors."""


def read_found_text_file(path: str) -> str:
    """The text of a regular file; no link is followed to it."""
    _require_file(os.lstat(path))
    descriptor = os.open(path, _FLAGS)
    try:
        _require_file(os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            # A file can grow while it is read, so that its size promises nothing.
            content = file.read(_LARGEST_FILE + 1)
    finally:
        os.close(descriptor)
    if len(content) > _LARGEST_FILE:
        raise TextFileError("is larger than 1 MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextFileError("is not UTF-8 text") from error


def _require_file(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise TextFileError("is a symbolic link, and those are not followed")
    if not stat.S_ISREG(status.st_mode):
        raise TextFileError("is not a file")
