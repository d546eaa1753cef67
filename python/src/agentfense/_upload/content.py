"""The bytes of files that were found: not through a link, and not when a file has become something else."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import contextmanager
from typing import Iterator

from agentfense._directory import Directory
from agentfense._upload.entry import Entry
from agentfense.exceptions import UploadError

_PIECE_BYTES = 262_144
_SMALL_BYTES = 65_536


def read_content(entry: Entry) -> Iterator[bytes]:
    """The content that was hashed, in pieces, or an `UploadError`: two halves of two versions are nobody's file."""
    parents, name = entry.place
    try:
        with Directory.open(entry.top) as top, top.below(parents) as parent, opened(parent, name, entry.path) as file:
            pieces = _unchanged(file, entry)
            # A small file is known to be the same before anything of it is sent.
            yield from list(pieces) if entry.size <= _SMALL_BYTES else pieces
    except OSError as error:
        raise content_changed(entry.path) from error


@contextmanager
def opened(parent: Directory, name: str, path: str) -> Iterator[int]:
    """A descriptor of a regular file for reading."""
    file = parent.open_file(name)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise content_changed(path)
        yield file
    finally:
        os.close(file)


def pieces_of(file: int, size: int) -> Iterator[bytes]:
    """The bytes of a file. The size is what it is expected to have: one byte more is asked for, to notice growth."""
    at = 0
    while True:
        piece = os.read(file, min(_PIECE_BYTES, max(size - at, 0) + 1))
        if piece == b"":
            return
        at += len(piece)
        yield piece


def content_changed(path: str) -> UploadError:
    """It is not what it was when the walk saw it."""
    return UploadError(f"{path} changed while it was being read; try again", retryable=True, details={"path": path})


def _unchanged(file: int, entry: Entry) -> Iterator[bytes]:
    digest = hashlib.sha256()
    sent = 0
    for piece in pieces_of(file, entry.size):
        sent += len(piece)
        if sent > entry.size:
            raise content_changed(entry.path)
        digest.update(piece)
        yield piece
    if digest.hexdigest() != entry.sha256:
        raise content_changed(entry.path)
