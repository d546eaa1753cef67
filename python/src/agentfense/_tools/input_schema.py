"""The inputs of tools: JSON Schemas, as plain as they come, and the check of what a model sent against them."""

from __future__ import annotations

import json
import math
from typing import Any, Dict, FrozenSet, Iterator, Mapping, Sequence, Tuple

from agentfense._tools.bounds import repaired
from agentfense._tools.failure import ToolFailure

Property = Mapping[str, Any]
_LARGEST_INTEGER = 2**53 - 1


def text(description: str, *, may_be_empty: bool = False) -> Property:
    """A string."""
    length = {} if may_be_empty else {"minLength": 1}
    return {"type": "string", **length, "description": description}


def integer(description: str, least: int, most: int) -> Property:
    """A whole number between two, which belong to it."""
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


def flag(description: str) -> Property:
    """True or false."""
    return {"type": "boolean", "description": description}


def accepted(given: object, properties: Mapping[str, Property], required: FrozenSet[str]) -> Dict[str, Any]:
    """What a model sent, if it fits: without the nulls, which are how it leaves out what it is made to write.

    Raises a ToolFailure that says everything that does not fit, in the words that the TypeScript tools have for it.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise _misfit(f"Invalid input: expected object, received {_kind(given)}")
    present = {_repaired(name): _repaired(value) for name, value in given.items() if value is not None}
    complaints = [
        f"{name}: {complaint}"
        for name, schema in properties.items()
        if name in present or name in required
        for complaint in _complaints(schema, present.get(name))
    ]
    unknown = [json.dumps(name, ensure_ascii=False) for name in present if name not in properties]
    if unknown:
        complaints.append(f"Unrecognized key{'s' if len(unknown) > 1 else ''}: {', '.join(unknown)}")
    if complaints:
        raise _misfit("; ".join(complaints))
    return {name: _taken(properties[name], value) for name, value in present.items()}


def _misfit(complaint: str) -> ToolFailure:
    return ToolFailure(f"the input does not fit: {complaint}")


def _repaired(value: Any) -> Any:
    return repaired(value) if isinstance(value, str) else value


def _complaints(schema: Property, value: object) -> Iterator[str]:
    expected = "number" if schema["type"] == "integer" else schema["type"]
    if _kind(value) != expected:
        yield f"Invalid input: expected {expected}, received {_kind(value)}"
    elif isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield f"Too small: expected string to have >={schema['minLength']} characters"
    elif isinstance(value, (int, float)) and expected == "number":
        yield from _number_complaints(schema, value)


def _number_complaints(schema: Property, value: float) -> Iterator[str]:
    if value != int(value):
        yield "Invalid input: expected int, received number"
        return
    if value > _LARGEST_INTEGER:
        yield f"Too big: expected int to be <={_LARGEST_INTEGER}"
    if value < schema["minimum"]:
        yield f"Too small: expected number to be >={schema['minimum']}"
    if value > schema["maximum"]:
        yield f"Too big: expected number to be <={schema['maximum']}"


def _taken(schema: Property, value: Any) -> Any:
    return int(value) if schema["type"] == "integer" else value


def _kind(value: object) -> str:
    """The word that JavaScript has for it."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity"
    return next((word for kind, word in _KINDS if isinstance(value, kind)), "array")


_KINDS: Sequence[Tuple[type, str]] = (
    (str, "string"),
    (int, "number"),
    (float, "number"),
    (Mapping, "object"),
    (type(None), "undefined"),
)
