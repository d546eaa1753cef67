"""What is kept of a text that is too long, or none."""

from __future__ import annotations

from typing import Sequence

MAX_OUTPUT = 30_000
"""Characters of an output, unless somebody wants another number."""


def keep_ends(text: str, limit: int) -> str:
    """The beginning and the end of a text that is too long: a command's last lines say how it went."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit - limit // 2], text[len(text) - limit // 2 :]
    return f"{head}\n[{len(text) - limit} characters left out]\n{tail}"


def keep_lines(lines: Sequence[str], limit: int, advice: str) -> str:
    """The first of several lines, and how many more there are."""
    length = 0
    for number, line in enumerate(lines):
        length += len(line) + 1
        if length > limit:
            return "\n".join([*lines[:number], f"[{len(lines) - number} more left out: {advice}]"])
    return "\n".join(lines)


def clip(line: str, limit: int) -> str:
    """The beginning of a line."""
    return line if len(line) <= limit else f"{line[:limit]}…"


def repaired(text: str) -> str:
    """JSON can spell half of a character, which nothing can write down: it becomes the sign for what is missing."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
