"""What becomes of a command's output on this side."""

from __future__ import annotations

import codecs
from typing import Callable

COLLECTED_BYTES = 10 * 1024 * 1024
"""Kept of each output for the result."""

OutputCallback = Callable[[str], object]
"""Sees output as it comes. In the asynchronous face it may be a coroutine function, which is then waited for."""


class Collection:
    """One output of a command as far as it goes into the result."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self.truncated = False

    def add(self, data: bytes) -> None:
        """Keeps it, up to the limit."""
        room = COLLECTED_BYTES - len(self._kept)
        self._kept += data[:room]
        self.truncated = self.truncated or len(data) > room

    def content(self) -> bytes:
        """Gives what was kept."""
        return bytes(self._kept)


class TextPieces:
    """Decodes an output piece by piece; a character may come in two, and what is no UTF-8 is replaced."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes) -> str:
        """Gives the characters that are complete now."""
        return self._decoder.decode(data)

    def end(self) -> str:
        """Gives what is left of a character that was never completed."""
        return self._decoder.decode(b"", final=True)
