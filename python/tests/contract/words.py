"""What the words of the cases, which are those of the TypeScript SDK, are in Python."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Callable, Dict, Mapping, Sequence, Tuple

from agentfense import ResourceLimits

# No matter of spelling: in Python, `exec` has always waited for the end, and this option has always had that name.
SANDBOX_METHODS = {"exec": "exec_stream"}
OPTIONS = {"start": "auto_start"}
# These extend it here, while TypeScript turns its own, which are no errors of a sandbox, into it.
ERRORS = {"PresetError": "InvalidConfigurationError", "RuleError": "InvalidConfigurationError"}


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def member_name(name: str) -> str:
    """durationMs is duration: a time says its unit by being one."""
    return snake_case(re.sub(r"Ms$", "", name))


def arguments(args: Sequence[object]) -> Tuple[Sequence[object], Dict[str, Any]]:
    """An object at the end holds options, which are keyword arguments here."""
    if args and isinstance(args[-1], dict):
        return args[:-1], keywords(args[-1])
    return args, {}


def keywords(options: Mapping[str, object]) -> Dict[str, Any]:
    return {OPTIONS.get(name, member_name(name)): _option(name, value) for name, value in options.items()}


def member(value: object, name: str) -> object:
    """What a record, an error or a plain map has under a name of TypeScript."""
    if isinstance(value, Mapping):
        return value[name]
    if name == "name" and isinstance(value, BaseException):
        own = type(value).__name__
        return ERRORS.get(own, own)
    found = getattr(value, member_name(name))
    return _milliseconds(found) if name.endswith("Ms") else found


def _option(name: str, value: object) -> object:
    if name.endswith("Ms") and isinstance(value, (int, float)):
        return value / 1000
    return MAKERS[name](value) if name in MAKERS else value


def _resource_limits(value: object) -> object:
    assert isinstance(value, dict)
    return ResourceLimits(**{snake_case(name): each for name, each in value.items()})


MAKERS: Mapping[str, Callable[[object], object]] = {"resources": _resource_limits}


def _milliseconds(value: object) -> float:
    assert isinstance(value, (timedelta, float)), value
    return (value.total_seconds() if isinstance(value, timedelta) else value) * 1000
