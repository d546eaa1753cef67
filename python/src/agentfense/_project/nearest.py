"""What somebody meant who mistyped."""

from __future__ import annotations

from typing import Iterable, Optional

_LONGEST = 64


def nearest_name(given: str, names: Iterable[str]) -> Optional[str]:
    """The name that was probably meant: the nearest of those that are a slip of the finger away."""
    if len(given) > _LONGEST:
        return None
    distances = [(_slips(given.lower(), name.lower()), name) for name in names]
    near = [pair for pair in distances if pair[0] <= max(1, len(pair[1]) // 3)]
    return min(near, key=lambda pair: pair[0])[1] if near else None


def _slips(one: str, other: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours."""
    before_last: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        following = [row]
        for column, wanted in enumerate(other, 1):
            cost = min(last[column] + 1, following[column - 1] + 1, last[column - 1] + (letter != wanted))
            if row > 1 and column > 1 and (letter, one[row - 2]) == (other[column - 2], wanted):
                cost = min(cost, before_last[column - 2] + 1)
            following.append(cost)
        before_last, last = last, following
    return last[-1]
