"""The Python blocks of the owner's documents, read from the copies in test/samples/documents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import List, Tuple

REPOSITORY = Path(__file__).resolve().parents[3]
DOCUMENTS = REPOSITORY / "test" / "samples" / "documents"

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[^`\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A ```python block; ordinals count from 1 in each document."""

    document: str
    ordinal: int
    text: str

    @property
    def first_line(self) -> str:
        return self.text.split("\n", 1)[0]


def python_blocks() -> List[Block]:
    return [
        Block(path.stem, ordinal, text)
        for path in sorted(DOCUMENTS.glob("*.md"))
        for ordinal, text in enumerate(_texts(path.read_text("utf-8")), start=1)
    ]


def _texts(document: str) -> List[str]:
    return [dedent(found["text"]) for found in _FENCE.finditer(document) if found["language"] in ("py", "python")]


@dataclass(frozen=True)
class Transcript:
    """A block that goes on as a terminal does: Python, then `$ command` lines, each with what a comment says of it."""

    python: str
    commands: List[Tuple[str, str]]


def split_transcript(text: str) -> Transcript:
    python, *entries = re.split(r"^\$ ", text, flags=re.MULTILINE)
    return Transcript(python, [_command(entry) for entry in entries])


def _command(entry: str) -> Tuple[str, str]:
    command, _, rest = entry.partition("\n")
    said = re.match(r"# 输出:(.*)\n", rest)
    if said is None:
        raise ValueError(f"the document does not say what {command!r} gives")
    return command, said[1]


def stated_levels(text: str) -> List[Tuple[str, str]]:
    """What comments state as `/secrets/private.key → none`, or as a question (查询) with its result (结果)."""
    arrows = re.findall(r"^# (?:- )?(/\S+)\s+→ (\w+)", text, re.MULTILINE)
    return arrows or re.findall(r"^# 查询: (/\S+)\n(?:#.*\n)*?# 结果: (\w+)", text, re.MULTILINE)
