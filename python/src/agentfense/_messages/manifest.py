"""What a codebase is to be, entry by entry."""

from __future__ import annotations

from typing import Iterable, Iterator, List

from agentfense._messages.numbers import count, mode_bits
from agentfense._messages.words import MANIFEST_KINDS
from agentfense._wire.sandbox.v1 import codebase_pb2
from agentfense.types import ManifestEntry

#: Messages stay well below what any server accepts, and none has so many entries that others wait for it to be read.
MESSAGE_BYTES = 262_144
# More than any entry takes on the wire besides its names.
_ENTRY_OVERHEAD = 128


def manifest_message(entry: ManifestEntry) -> codebase_pb2.ManifestEntry:
    """An entry on its way to the server."""
    return codebase_pb2.ManifestEntry(
        path=entry.path,
        kind=MANIFEST_KINDS.number(entry.kind),
        mode=mode_bits(entry.mode),
        size=count(entry.size, "size"),
        checksum=entry.sha256,
        symlink_target=entry.target,
    )


def entry_weight(entry: ManifestEntry) -> int:
    """About how many bytes an entry takes in a message."""
    return len(entry.path.encode()) + len(entry.target.encode()) + _ENTRY_OVERHEAD


def in_messages(entries: Iterable[ManifestEntry]) -> Iterator[List[ManifestEntry]]:
    """The entries in groups that each fit into one message."""
    group: List[ManifestEntry] = []
    weight = 0
    for entry in entries:
        own = entry_weight(entry)
        if weight + own > MESSAGE_BYTES and group:
            yield group
            group = []
            weight = 0
        group.append(entry)
        weight += own
    if group:
        yield group
