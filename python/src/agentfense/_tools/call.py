"""What goes into a tool and what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Mapping, Union

from typing_extensions import Literal

ToolName = Literal["shell", "read_file", "write_file", "edit_file", "list_files", "search", "changes"]


@dataclass(frozen=True)
class ToolRequest:
    """A call that is about to run a command or to write a file."""

    tool: ToolName
    #: As it was accepted: what the model left out is absent.
    input: Mapping[str, Any]


@dataclass(frozen=True)
class ToolOutput:
    """What a tool tells the model."""

    text: str
    #: It could not be done, and the text says why. A command that ended with another exit code than 0 was done.
    is_error: bool


Approve = Callable[[ToolRequest], bool]
"""Whether to do it. Nothing but True is a yes."""

AsyncApprove = Callable[[ToolRequest], Union[bool, Awaitable[bool]]]
"""The same, which may also be a coroutine function."""
