"""Some lines of a file, of which no more is fetched and kept than that takes."""

from __future__ import annotations

from agentfense._sandbox.output import TextPieces
from agentfense._tools.failure import ToolFailure


class LineWindow:
    """Takes a file piece by piece, until it has the lines that were asked for.

    Args:
        first: The first line, counted from 1.
        last: The last one.
        max_characters: Kept of them.
    """

    def __init__(self, first: int, last: int, max_characters: int) -> None:
        self._first = first
        self._last = last
        self._room = max_characters
        self._decoder = TextPieces()
        self._kept = ""
        self._line = 1
        self._is_at_start = True
        self._rest = ""

    def add(self, data: bytes) -> bool:
        """Takes the next bytes; true when no more are needed."""
        if b"\0" in data:
            raise ToolFailure("this is no text file")
        return self._take(self._decoder.add(data))

    def end(self, path: str) -> str:
        """What to tell of the file: its text, and where it goes on."""
        if self._rest == "":
            self._take(self._decoder.end())
        if self._rest != "":
            return f"{self._kept}{'' if self._kept.endswith(chr(10)) else chr(10)}[{self._rest}]"
        if self._kept != "":
            return self._kept
        lines = self._line - 1 if self._is_at_start else self._line
        if lines == 0:
            return "(empty file)"
        raise ToolFailure(f"{path} has only {lines} lines")

    def _take(self, piece: str) -> bool:
        start = 0
        while start < len(piece):
            if self._line > self._last:
                return self._stop_before_line()
            newline = piece.find("\n", start)
            stop = len(piece) if newline == -1 else newline + 1
            if self._line >= self._first:
                if stop - start > self._room - len(self._kept):
                    # A line that would fit in an answer of its own is left for the next one.
                    if self._kept != "" and self._is_at_start:
                        return self._stop_before_line()
                    self._kept += piece[start : start + self._room - len(self._kept)]
                    self._rest = f"line {self._line} is cut: it is too long"
                    return True
                self._kept += piece[start:stop]
            self._is_at_start = newline != -1
            if self._is_at_start:
                self._line += 1
            start = stop
        return False

    def _stop_before_line(self) -> bool:
        self._rest = f"more lines: read on with offset {self._line}"
        return True
