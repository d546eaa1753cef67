"""What a directory has for a codebase."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Callable, List, Optional, Sequence, Union

from agentfense._upload.entry import Entry
from agentfense._upload.hash import hash_files
from agentfense._upload.walk import walk
from agentfense.exceptions import UploadError
from agentfense.types import EntryKind, UploadProgress

_NAMED_AT_MOST = 10


@dataclass(frozen=True)
class Selection:
    """What will be uploaded."""

    #: A directory before what is in it; files with their hashes.
    entries: List[Entry]
    #: What stays behind and why, each as a sentence.
    left_out: List[str]

    @property
    def bytes(self) -> int:
        """In all files."""
        return sum(entry.size for entry in self.entries)


def select_entries(
    top: Union[str, os.PathLike[str]],
    *,
    ignore_files: bool = True,
    ignore: Optional[Sequence[str]] = None,
    include_git: bool = False,
    skip_unreadable: bool = False,
    on_progress: Optional[Callable[[UploadProgress], None]] = None,
) -> Selection:
    """Walks and hashes. Raises an `UploadError` when something cannot be read, unless that is to be left out.

    `ignore` are patterns as in .gitignore, relative to the top, that have the last word over those of files. What
    `on_progress` raises ends the work and comes out here.
    """
    directory = _real_directory(os.fspath(top))
    found = walk(directory, ignore_files=ignore_files, ignore=ignore or (), include_git=include_git)
    files = [entry for entry in found.entries if entry.kind is EntryKind.FILE]
    total_bytes = sum(entry.size for entry in files)
    done_bytes = 0

    def on_bytes(count: int) -> None:
        nonlocal done_bytes
        done_bytes += count
        if on_progress is not None:
            on_progress(UploadProgress("reading", done_bytes, total_bytes, len(files)))

    hashed = hash_files(directory, files, on_bytes)
    refused = [*found.unreadable, *(entry.path for entry in files if entry.path not in hashed)]
    if refused and not skip_unreadable:
        raise _unreadable_error(refused)
    kept = (hashed.get(entry.path) if entry.kind is EntryKind.FILE else entry for entry in found.entries)
    left_out = [f"{path}: cannot be read" for path in refused] + found.unsuitable
    return Selection([entry for entry in kept if entry is not None], left_out)


def _real_directory(top: str) -> str:
    """An empty upload of a directory that is not there would, with `replace_all`, empty the codebase."""
    try:
        directory = os.path.realpath(top)
        if not os.path.isdir(directory):
            # For a reason, where there is one.
            os.stat(directory)
            raise UploadError(f"cannot upload {top}: it is not a directory")
    except OSError as error:
        raise UploadError(f"cannot upload {top}: {error.strerror}") from error
    return directory


def _unreadable_error(paths: Sequence[str]) -> UploadError:
    more = f" and {len(paths) - _NAMED_AT_MOST} more" if len(paths) > _NAMED_AT_MOST else ""
    return UploadError(
        f"these cannot be read: {', '.join(paths[:_NAMED_AT_MOST])}{more}",
        hint="leave them out with skip_unreadable",
        unreadable=paths,
    )
