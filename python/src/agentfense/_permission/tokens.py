"""The syntax of a pattern, as a tree. Escapes and classes are read first, so nothing that braces do can break them up.

pattern     := (piece | alternation)*
piece       := "/" | "*" | "?" | class | character | "\\" character
alternation := "{" pattern ("," pattern)+ "}"
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import List, Tuple, Union


class Mark(Enum):
    """A character of a pattern that stands for something else than itself."""

    SLASH = "/"
    STAR = "*"
    ANY = "?"


@dataclass(frozen=True)
class CharacterClass:
    """Exactly one character out of (or, negated, outside of) some ranges."""

    negated: bool
    #: Inclusive.
    ranges: Tuple[Tuple[str, str], ...]


#: A character by itself is literal.
Piece = Union[str, Mark, CharacterClass]


@dataclass(frozen=True)
class Alternation:
    """What stands in braces."""

    branches: Tuple[Tuple[Union[Piece, Alternation], ...], ...]


Sequence = Tuple[Union[Piece, Alternation], ...]


class PatternError(Exception):
    """Why a text is not a pattern; the rule it stands in is added by whoever has the rule."""


@dataclass(frozen=True)
class ParsedPattern:
    """A pattern and what its syntax alone says, which is what its type is inferred from."""

    sequence: Sequence
    has_wildcard: bool
    has_slash: bool

    @property
    def ends_in_slash(self) -> bool:
        """As a directory is written."""
        return self.sequence[-1:] == (Mark.SLASH,)


def parse_pattern(text: str) -> ParsedPattern:
    """Raises a `PatternError` that says what is wrong."""
    parser = _Parser(text)
    sequence = parser.sequence(0)
    return ParsedPattern(sequence, parser.has_wildcard, parser.has_slash)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self.has_wildcard = False
        self.has_slash = False

    def sequence(self, depth: int) -> Sequence:
        pieces: List[Union[Piece, Alternation]] = []
        while self._position < len(self._text):
            if depth > 0 and self._peek() in (",", "}"):
                return tuple(pieces)
            pieces.append(self._piece(depth))
        if depth > 0:
            raise PatternError("a brace is opened and not closed; write \\{ for a literal brace")
        return tuple(pieces)

    def _piece(self, depth: int) -> Union[Piece, Alternation]:
        character = self._take()
        if character == "\\":
            return self._escaped()
        if character == "]":
            raise PatternError("a bracket is closed and not opened; write \\] for a literal bracket")
        if character == "}":
            raise PatternError("a brace is closed and not opened; write \\} for a literal brace")
        if character == "/":
            self.has_slash = True
            return Mark.SLASH
        if character not in "*?[{":
            return character
        self.has_wildcard = True
        if character == "[":
            return self._class()
        return self._alternation(depth + 1) if character == "{" else Mark(character)

    def _alternation(self, depth: int) -> Alternation:
        branches: List[Sequence] = []
        while True:
            branches.append(self.sequence(depth))
            if self._take() == "}":
                break
        if len(branches) < 2:
            raise PatternError(
                "braces hold at least two alternatives, as in {a,b}; write \\{ and \\} for literal braces"
            )
        return Alternation(tuple(branches))

    def _class(self) -> CharacterClass:
        negated = self._peek() in ("!", "^")
        if negated:
            self._take()
        ranges: List[Tuple[str, str]] = []
        while self._peek() != "]":
            low = high = self._member()
            if self._peek() == "-" and self._text[self._position + 1 : self._position + 2] not in ("", "]"):
                self._take()
                high = self._member()
                if high < low:
                    raise PatternError("a range in a class runs backwards")
            ranges.append((low, high))
        self._take()
        if not ranges:
            raise PatternError("a class is empty; write \\] for a literal bracket in a class")
        return CharacterClass(negated, tuple(ranges))

    def _member(self) -> str:
        character = self._take()
        if character == "":
            raise PatternError("a bracket is opened and not closed; write \\[ for a literal bracket")
        if character == "/":
            raise PatternError("a class holds a slash, which no name contains")
        if character == "[" and self._peek() == ":":
            raise PatternError("named classes such as [:alpha:] do not exist; write the range, or \\[ for a bracket")
        return self._escaped() if character == "\\" else character

    def _escaped(self) -> str:
        character = self._take()
        if character == "":
            raise PatternError("the pattern ends in a backslash that escapes nothing")
        if character == "/":
            raise PatternError("a slash cannot be escaped")
        return character

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _take(self) -> str:
        character = self._peek()
        self._position += 1
        return character
