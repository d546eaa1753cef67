"""Numbers and texts on their way to the server, checked where whoever wrote them still sees it."""

from __future__ import annotations

from typing import Dict, Mapping, Optional

from agentfense.exceptions import InvalidConfigurationError

_LARGEST_UINT32 = 2**32 - 1
_LARGEST_INT32 = 2**31 - 1
_LARGEST_INT64 = 2**63 - 1


def count(value: Optional[int], name: str, largest: int = _LARGEST_INT64) -> int:
    """A count. None is 0, which the contract takes for "not given"."""
    if value is None:
        return 0
    if _is_whole(value) and 0 <= value <= largest:
        return value
    raise InvalidConfigurationError(f"{name} must be a whole number, 0 or more, not {value!r}")


def mode_bits(mode: Optional[int]) -> int:
    """Permission bits; None is 0, "not given"."""
    return count(mode, "mode", _LARGEST_UINT32)


def page_size_of(page_size: Optional[int]) -> int:
    """How many to fetch at a time; the server has a maximum of its own."""
    if page_size is None:
        return 0
    if count(page_size, "page_size") == 0:
        raise InvalidConfigurationError("page_size must be a whole number above 0, not 0")
    return min(page_size, _LARGEST_INT32)


def strings(values: Optional[Mapping[str, str]], name: str) -> Dict[str, str]:
    """Texts by name, such as an environment. A number among them is a mistake that protobuf has few words for."""
    for key, value in (values or {}).items():
        if not _are_strings(key, value):
            raise InvalidConfigurationError(f"{name}[{key!r}] must be a string, not {value!r}")
    return dict(values or {})


# Callers may have no types.


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_strings(*values: object) -> bool:
    return all(isinstance(value, str) for value in values)
