"""Content that travels in pieces."""

from __future__ import annotations

from typing import Iterator, Union

from agentfense._wire.sandbox.v1 import codebase_pb2

#: The most content in one message.
PIECE_BYTES = 256 * 1024


def pieces(data: Union[str, bytes, bytearray, memoryview]) -> Iterator[bytes]:
    """The same bytes in pieces that fit a message; none for no bytes."""
    content = memoryview(data.encode() if isinstance(data, str) else data).cast("B")
    for offset in range(0, len(content), PIECE_BYTES):
        yield bytes(content[offset : offset + PIECE_BYTES])


def data_of(chunk: codebase_pb2.FileChunk) -> bytes:
    """A piece of a file of an answer."""
    return chunk.data
