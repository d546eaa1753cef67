"""Prints what the Python SDK exports as a JSON list of lines; typescript-names.ts says what each line is."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator

import agentfense

# The only class that callers make with its constructor.
CONSTRUCTED = ("SandboxClient", "AsyncSandboxClient")
PROTOCOLS = {
    "__enter__": "[context manager]",
    "__aenter__": "[context manager]",
    "__iter__": "[iteration]",
    "__aiter__": "[iteration]",
}


def exported(name: str, value: object) -> Iterator[str]:
    if not inspect.isclass(value):
        yield from callable_lines(name, value)
        return
    yield name
    if issubclass(value, enum.Enum):
        yield from (f"{name}: {word.value}" for word in value)
    elif issubclass(value, BaseException):
        yield f"{name} < {value.__bases__[0].__name__}"
        inherited = {"message", *members(value.__bases__[0])}
        yield from (f"{name}.{member}" for member in members(value) if member not in inherited)
    else:
        if name in CONSTRUCTED:
            yield from (f"{name}({parameter})" for parameter in parameters(value))
        for member in members(value):
            yield from callable_lines(
                f"{name}.{PROTOCOLS.get(member, member)}", inspect.getattr_static(value, member, None)
            )


def callable_lines(name: str, value: object) -> Iterator[str]:
    yield name
    function = getattr(value, "__func__", value)
    if inspect.isfunction(function) and "[" not in name:
        yield from (f"{name}({parameter})" for parameter in parameters(function) if parameter not in ("self", "cls"))


def parameters(function: Callable[..., object]) -> list[str]:
    return list(inspect.signature(function).parameters)


def members(kind: type) -> list[str]:
    """Of the class and of those of ours that it extends."""
    ours = [each for each in kind.__mro__ if each.__module__.startswith("agentfense")]
    return sorted({member for each in ours for member in own_members(each)})


def own_members(kind: type) -> list[str]:
    declared = [*vars(kind), *vars(kind).get("__annotations__", {}), *assigned(kind)]
    return [name for name in declared if name in PROTOCOLS or not name.startswith("_")]


def assigned(kind: type) -> Iterator[str]:
    """The attributes that a written constructor gives its object."""
    constructor = vars(kind).get("__init__")
    if constructor is None or dataclasses.is_dataclass(kind):
        return
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(constructor)))):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


if __name__ == "__main__":
    print(json.dumps([line for name in agentfense.__all__ for line in exported(name, getattr(agentfense, name))]))
