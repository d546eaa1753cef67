"""What a pattern matches: plain patterns, one for each alternative of its braces."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from agentfense._permission.rule import LONGEST_PATTERN, MOST_ALTERNATIVES
from agentfense._permission.tokens import (
    Alternation,
    CharacterClass,
    Mark,
    ParsedPattern,
    PatternError,
    Piece,
    parse_pattern,
)
from agentfense._permission.tokens import Sequence as Pieces
from agentfense.types import PatternType

#: What stands between two slashes; no two stars in a row.
Segment = Tuple[Piece, ...]
#: `**`: any number of segments.
GLOBSTAR: Segment = (Mark.STAR, Mark.STAR)
_ANY: Segment = (Mark.STAR,)


@dataclass(frozen=True)
class Alternative:
    """One plain pattern."""

    #: From the root of the workspace; no two globstars in a row.
    segments: Tuple[Segment, ...]

    @property
    def specificity(self) -> int:
        """Characters of literal text, slashes not counted."""
        return sum(isinstance(piece, str) for segment in self.segments for piece in segment)

    @property
    def text_length(self) -> int:
        """Characters, about."""
        return sum(len(_segment_key(segment)) + 1 for segment in self.segments) - 1

    def matches(self, names: Sequence[str]) -> bool:
        """Whether it is about the path with these names."""
        reached = {0}
        for name in names:
            reached = {after for at in _with_skips(self.segments, reached) for after in self._after(at, name)}
        return len(self.segments) in _with_skips(self.segments, reached)

    def _after(self, at: int, name: str) -> List[int]:
        if at == len(self.segments):
            return []
        segment = self.segments[at]
        if segment == GLOBSTAR:
            return [at]
        return [at + 1] if re.fullmatch(_expression(segment), name, re.DOTALL) else []


@dataclass(frozen=True)
class Pattern:
    """A pattern that was read."""

    #: What it is obeyed as: given, or inferred from its syntax.
    type: PatternType
    alternatives: Tuple[Alternative, ...]


def read_pattern(text: str, given_type: Optional[PatternType]) -> Pattern:
    """Raises a `PatternError` that says what is wrong.

    Type and anchoring are read off the pattern as it is written; then braces are expanded as in a shell, and every
    alternative is one plain pattern with a specificity of its own.
    """
    if text == "":
        raise PatternError("the pattern is empty")
    if len(text.encode("utf-16-le", "surrogatepass")) // 2 > LONGEST_PATTERN:
        raise PatternError(f"the pattern is longer than {LONGEST_PATTERN} characters")
    if "\0" in text:
        raise PatternError("the pattern contains a NUL character, which no name contains")
    if text.startswith("!"):
        raise PatternError("negation does not exist; write a rule with another level, or \\! for a name with that mark")
    parsed = parse_pattern(text)
    kind = _resolve_type(parsed, given_type)
    if kind is PatternType.FILE and parsed.ends_in_slash and text != "/":
        raise PatternError("a file pattern ends in a slash; leave it out, or use type directory")
    if _count_branches(parsed.sequence) > MOST_ALTERNATIVES:
        raise _too_many_alternatives()

    # A type that is given makes the pattern a path, and a path starts at the root.
    is_anchored = parsed.has_slash or given_type in (PatternType.FILE, PatternType.DIRECTORY)
    # A dict keeps the order and each key once.
    alternatives: Dict[Alternative, None] = {}
    for pieces in _expand_braces(parsed.sequence):
        if pieces[-1:] == [Mark.SLASH] and not parsed.ends_in_slash:
            raise PatternError("an alternative ends in a slash; put the slash behind the braces")
        parts = _split_at_slashes(pieces)
        _check_parts(parts)
        for segments in _separate_globstars(parts):
            place = _normalize(segments if is_anchored else [GLOBSTAR, *segments])
            normal = _normalize([*place, GLOBSTAR]) if kind is PatternType.DIRECTORY else place
            alternatives[Alternative(tuple(normal))] = None
            if len(alternatives) > MOST_ALTERNATIVES:
                raise _too_many_alternatives()
    return Pattern(kind, tuple(alternatives))


def _resolve_type(parsed: ParsedPattern, given: Optional[PatternType]) -> PatternType:
    """The type that counts.

    | given            | pattern                   | type      |
    | ---------------- | ------------------------- | --------- |
    | file, directory  | no wildcard               | as given  |
    | file, directory  | has a wildcard            | refused   |
    | none, glob       | ends in `/`               | directory |
    | none, glob       | no wildcard and has a `/` | file      |
    | none, glob       | anything else             | glob      |
    """
    if given is not None and given is not PatternType.GLOB:
        if parsed.has_wildcard:
            raise PatternError(
                f"type {given} takes a literal path, and the pattern has a wildcard; "
                "leave the type out, or escape it with \\"
            )
        return given
    if parsed.ends_in_slash:
        return PatternType.DIRECTORY
    return PatternType.FILE if parsed.has_slash and not parsed.has_wildcard else PatternType.GLOB


def _count_branches(sequence: Pieces) -> int:
    """How many patterns the braces stand for, found without making them."""
    return prod(sum(map(_count_branches, piece.branches)) for piece in sequence if isinstance(piece, Alternation))


def _expand_braces(sequence: Pieces) -> List[List[Piece]]:
    expanded: List[List[Piece]] = [[]]
    for piece in sequence:
        if isinstance(piece, Alternation):
            endings = [ending for branch in piece.branches for ending in _expand_braces(branch)]
            expanded = [start + ending for start in expanded for ending in endings]
        else:
            for pieces in expanded:
                pieces.append(piece)
    return expanded


def _split_at_slashes(pieces: List[Piece]) -> List[List[Piece]]:
    """The parts between slashes; the slash at the start or at the end of a pattern separates nothing."""
    parts: List[List[Piece]] = [[]]
    for piece in pieces:
        if piece is Mark.SLASH:
            parts.append([])
        else:
            parts[-1].append(piece)
    if pieces[:1] == [Mark.SLASH]:
        del parts[0]
    if pieces[-1:] == [Mark.SLASH] and parts[-1:] == [[]]:
        del parts[-1]
    return parts


def _check_parts(parts: List[List[Piece]]) -> None:
    for part in parts:
        if not part:
            raise PatternError("the pattern has an empty segment")
        if part in (["."], [".", "."]):
            raise PatternError("the pattern has a . or .. segment, which no path contains")


def _separate_globstars(parts: List[List[Piece]]) -> List[List[Segment]]:
    """The sequences of segments that the parts stand for.

    `**` that fills its segment spans any number of segments. Glued to other text it spans too: `a**b` is `a*b` in one
    segment or `a*`, anything, `*b` in several. So a segment with n of them stands for 2ⁿ sequences of segments.
    """
    sequences: List[List[Segment]] = [[]]
    for part in parts:
        is_globstar = len(part) >= 2 and all(piece is Mark.STAR for piece in part)
        endings = [[GLOBSTAR]] if is_globstar else _glued_readings(part)
        if len(sequences) * len(endings) > MOST_ALTERNATIVES:
            raise _too_many_alternatives()
        sequences = [start + ending for start in sequences for ending in endings]
    return sequences


def _glued_readings(part: List[Piece]) -> List[List[Segment]]:
    first, *rest = _split_at_double_stars(part)
    if 2 ** len(rest) > MOST_ALTERNATIVES:
        raise _too_many_alternatives()
    readings: List[Tuple[List[Segment], List[Piece]]] = [([], first)]
    for pieces in rest:
        readings = [
            reading
            for done, open_end in readings
            for reading in (
                (done, [*open_end, Mark.STAR, *pieces]),
                ([*done, _segment([*open_end, Mark.STAR]), GLOBSTAR], [Mark.STAR, *pieces]),
            )
        ]
    return [[*done, _segment(open_end)] for done, open_end in readings]


def _split_at_double_stars(part: List[Piece]) -> List[List[Piece]]:
    pieces: List[List[Piece]] = [[]]
    at = 0
    while at < len(part):
        stars = 0
        while part[at + stars : at + stars + 1] == [Mark.STAR]:
            stars += 1
        if stars >= 2:
            pieces.append([])
        else:
            pieces[-1].append(part[at])
        at += max(stars, 1)
    return pieces


def _segment(pieces: List[Piece]) -> Segment:
    """Several stars in a row say no more than one."""
    return tuple(
        piece for at, piece in enumerate(pieces) if at == 0 or piece is not Mark.STAR or pieces[at - 1] is not Mark.STAR
    )


def _normalize(segments: Sequence[Segment]) -> List[Segment]:
    """Equal meanings get equal segments.

    A run of `*` and `**` means "at least so many segments" in whatever order, and is written with its `**` first. A
    pattern made of `**` alone, or of `**` and one final `*`, means everything, the root of the workspace included.
    """
    before_last_star = segments[:-1] if segments[-1:] == [_ANY] else segments
    if len(before_last_star) > 0 and all(segment == GLOBSTAR for segment in before_last_star):
        return [GLOBSTAR]
    normal: List[Segment] = []
    run: List[Segment] = []
    for segment in [*segments, None]:
        if segment is not None and segment in (GLOBSTAR, _ANY):
            run.append(segment)
            continue
        normal += ([GLOBSTAR] if GLOBSTAR in run else []) + [_ANY] * run.count(_ANY)
        run = []
        if segment is not None:
            normal.append(segment)
    return normal


def _with_skips(segments: Tuple[Segment, ...], reached: set[int]) -> Iterator[int]:
    """The places reached, and those behind a `**` that may stand for nothing."""
    for at in reached:
        yield at
        if at < len(segments) and segments[at] == GLOBSTAR:
            yield at + 1


def _expression(segment: Segment) -> str:
    return "".join(map(_piece_expression, segment))


def _piece_expression(piece: Piece) -> str:
    if isinstance(piece, CharacterClass):
        ranges = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in piece.ranges)
        return f"[{'^' if piece.negated else ''}{ranges}]"
    if isinstance(piece, Mark):
        return ".*" if piece is Mark.STAR else "."
    return re.escape(piece)


def _segment_key(segment: Segment) -> str:
    """As the server writes a segment down when it counts the characters of a rule set."""
    is_wild = any(not isinstance(piece, str) for piece in segment)
    if segment in (GLOBSTAR, _ANY):
        return "*" * len(segment)
    return ("~" if is_wild else "=") + "".join(_piece_key(piece) if is_wild else str(piece) for piece in segment)


def _piece_key(piece: Piece) -> str:
    if isinstance(piece, CharacterClass):
        bounds = ",".join(str(ord(bound)) for limits in piece.ranges for bound in limits)
        return f"[{'!' if piece.negated else ''}{bounds}]"
    if isinstance(piece, Mark):
        return piece.value
    return f"\\{piece}" if piece in "\\*?[" else piece


def _too_many_alternatives() -> PatternError:
    return PatternError(f"the pattern stands for more than {MOST_ALTERNATIVES} patterns")
