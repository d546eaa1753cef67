"""The messages of a batch upload."""

from __future__ import annotations

from typing import Iterable, Iterator, List, Tuple

from agentfense._messages.content import pieces
from agentfense._messages.manifest import MESSAGE_BYTES, entry_weight, manifest_message
from agentfense._wire.sandbox.v1 import codebase_pb2
from agentfense.types import BatchEntry, ManifestEntry


def batch_chunks(
    begin: codebase_pb2.BatchUploadChunk.Begin, entries: Iterable[ManifestEntry]
) -> Iterator[codebase_pb2.BatchUploadChunk]:
    """The messages of one batch: as many items in each as fit. Content is read when its turn comes."""
    begin.announces_end = True
    yield codebase_pb2.BatchUploadChunk(begin=begin)
    items: List[codebase_pb2.BatchItem] = []
    weight = 0
    for item, size in _batch_items(entries):
        if weight + size > MESSAGE_BYTES and items:
            yield codebase_pb2.BatchUploadChunk(items=items)
            items = []
            weight = 0
        items.append(item)
        weight += size
    # Without it a batch that is given up could be taken for complete, and what it had not got to, for removed.
    yield codebase_pb2.BatchUploadChunk(items=items, end=True)


def content_bytes(chunk: codebase_pb2.BatchUploadChunk) -> int:
    """How much content is in a message."""
    return sum(len(item.data) for item in chunk.items)


def _batch_items(entries: Iterable[ManifestEntry]) -> Iterator[Tuple[codebase_pb2.BatchItem, int]]:
    for entry in entries:
        item = codebase_pb2.BatchItem(entry=manifest_message(entry))
        size = entry_weight(entry)
        # What is short, or has no content, is one item; all that follows the first piece goes on with the file.
        for data in _content_of(entry):
            if item.data:
                yield item, size
                item = codebase_pb2.BatchItem()
                size = 0
            item.data = data
            size += len(data)
        yield item, size


def _content_of(entry: ManifestEntry) -> Iterator[bytes]:
    content = entry.content if isinstance(entry, BatchEntry) else None
    if isinstance(content, bytes):
        yield from pieces(content)
    elif content is not None:
        for data in content:
            yield from pieces(data)
