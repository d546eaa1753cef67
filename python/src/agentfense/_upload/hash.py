"""What the content of files is, by SHA-256."""

from __future__ import annotations

import errno
import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue
from threading import Event
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from agentfense._directory import Directory
from agentfense._upload.content import content_changed, opened, pieces_of
from agentfense._upload.entry import Entry

#: Reads this many files at once: enough to keep a disk busy.
_AT_ONCE = 4
#: Files of one directory that are one piece of work: the way to it is gone once for them.
_FILES_A_GROUP = 64


def hash_files(top: str, files: Sequence[Entry], on_bytes: Callable[[int], None]) -> Dict[str, Entry]:
    """The files by path, with hashes, without those that may not be read. `on_bytes` is called in this thread."""
    groups = list(_in_groups(files))
    reading = _Reading(top)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="agentfense-hash") as pool:
        try:
            results = [pool.submit(reading.hash_group, group) for group in groups]
            remaining = len(groups)
            while remaining > 0:
                count = reading.counts.get()
                if count is None:
                    remaining -= 1
                else:
                    on_bytes(count)
        finally:
            # After an error nobody wants the rest.
            reading.ended.set()
    return {entry.path: entry for result in results for entry in result.result()}


def _in_groups(files: Sequence[Entry]) -> Iterator[List[Entry]]:
    by_parent: Dict[Tuple[str, ...], List[Entry]] = {}
    for entry in files:
        by_parent.setdefault(entry.place[0], []).append(entry)
    for siblings in by_parent.values():
        for at in range(0, len(siblings), _FILES_A_GROUP):
            yield siblings[at : at + _FILES_A_GROUP]


class _Reading:
    def __init__(self, top: str) -> None:
        self._top = top
        #: Bytes that were read; None at the end of each group.
        self.counts: SimpleQueue[Optional[int]] = SimpleQueue()
        self.ended = Event()

    def hash_group(self, group: List[Entry]) -> List[Entry]:
        """Those of files with the same parent that may be read."""
        try:
            with Directory.open(self._top) as top, top.below(group[0].place[0]) as parent:
                return [entry for entry in (self._hash_file(parent, file) for file in group) if entry is not None]
        except NotADirectoryError as error:
            raise content_changed(group[0].path) from error
        finally:
            self.counts.put(None)

    def _hash_file(self, parent: Directory, entry: Entry) -> Optional[Entry]:
        try:
            with opened(parent, entry.place[1], entry.path) as file:
                digest = hashlib.sha256()
                size = 0
                for piece in pieces_of(file, entry.size):
                    if self.ended.is_set():
                        return None
                    digest.update(piece)
                    size += len(piece)
                    self.counts.put(len(piece))
                return replace(entry, size=size, sha256=digest.hexdigest())
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                return None
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
                raise content_changed(entry.path) from error
            raise
