"""What an expectation says about a value; the table is in test/contract/matching.ts."""

from __future__ import annotations

import re
from typing import Callable, List, Mapping, Optional

from tests.contract.words import member

Problem = Optional[str]


def mismatch(value: object, expected: object, path: str = "result") -> Problem:
    """Nothing, or what is not as expected, in words."""
    if isinstance(expected, list):
        return _list_mismatch(value, expected, path)
    if not isinstance(expected, dict):
        return None if _is_same(value, expected) else _differs(path, value, repr(expected))
    word, operand = next(iter(expected.items()))
    if len(expected) == 1 and word in SPECIAL:
        return None if SPECIAL[word](value, operand) else _differs(path, value, f"{word} {operand!r}")
    return _record_mismatch(value, expected, path)


def _is_same(value: object, expected: object) -> bool:
    """An enum is its text; but True is not 1."""
    return isinstance(value, bool) == isinstance(expected, bool) and value == expected


def _is_number_from(value: object, least: object) -> bool:
    assert isinstance(least, (int, float))
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= least


def _includes(value: object, wanted: object) -> bool:
    """All of them, in this order, among others."""
    assert isinstance(wanted, list)
    if not isinstance(value, (list, tuple)):
        return False
    rest = iter(value)
    return all(any(mismatch(each, item) is None for each in rest) for item in wanted)


SPECIAL: Mapping[str, Callable[[object, object], bool]] = {
    "contains": lambda value, operand: isinstance(value, str) and str(operand) in value,
    "matches": lambda value, operand: isinstance(value, str) and re.search(str(operand), value) is not None,
    "atLeast": _is_number_from,
    "bytes": lambda value, operand: isinstance(value, bytes) and value.hex() == operand,
    "includes": _includes,
}


def _list_mismatch(value: object, expected: List[object], path: str) -> Problem:
    if not isinstance(value, (list, tuple)) or len(value) != len(expected):
        return _differs(path, value, f"{len(expected)} items: {expected!r}")
    problems = (mismatch(each, item, f"{path}[{index}]") for index, (each, item) in enumerate(zip(value, expected)))
    return next((problem for problem in problems if problem is not None), None)


def _record_mismatch(value: object, expected: Mapping[str, object], path: str) -> Problem:
    problems = (mismatch(member(value, name), item, f"{path}.{name}") for name, item in expected.items())
    return next((problem for problem in problems if problem is not None), None)


def _differs(path: str, value: object, wanted: str) -> str:
    return f"{path} is {value!r}, not {wanted}"
