"""What tools keep of texts that are too long, or come in pieces."""

from __future__ import annotations

import random
from typing import List

import pytest

from agentfense._tools.bounds import clip, keep_ends, keep_lines
from agentfense._tools.failure import ToolFailure
from agentfense._tools.line_window import LineWindow

TEXT = "erste\nzweite mit ü und 😀\n\nvierte, die länger ist als die anderen\nletzte"


def test_bounds() -> None:
    assert keep_ends("12345", 5) == "12345"
    assert keep_ends("1234567", 5) == "123\n[2 characters left out]\n67"
    assert keep_ends("1234567", 0) == "\n[7 characters left out]\n"
    assert keep_lines(["a", "b"], 4, "-") == "a\nb"
    assert keep_lines(["a", "b", "c"], 4, "less") == "a\nb\n[1 more left out: less]"
    assert clip("12345", 4) == "1234…"


def told(pieces: List[bytes], window: LineWindow) -> str:
    for piece in pieces:
        if window.add(piece):
            break
    try:
        return window.end("file")
    except ToolFailure as failure:
        return f"error: {failure}"


@pytest.mark.parametrize("seed", range(20))
def test_a_window_is_the_same_wherever_the_pieces_of_the_file_begin(seed: int) -> None:
    content = TEXT.encode()
    chance = random.Random(seed)
    cuts = [0, *sorted(chance.sample(range(1, len(content)), 9)), len(content)]
    pieces = [content[start:stop] for start, stop in zip(cuts, cuts[1:])]
    for first in range(1, 8):
        for last in range(first, 8):
            expected = told([content], LineWindow(first, last, 1000))
            assert told(pieces, LineWindow(first, last, 1000)) == expected
            lines = TEXT.splitlines(keepends=True)[first - 1 : last]
            assert expected.startswith("".join(lines) or "error: file has only 5 lines")


def test_a_piece_with_a_nul_is_of_no_text() -> None:
    with pytest.raises(ToolFailure, match="this is no text file"):
        LineWindow(1, 1, 10).add(b"a\0")
