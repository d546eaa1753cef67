"""What a tool works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

from typing_extensions import Protocol

from agentfense._async.sandbox import AsyncSandbox
from agentfense._face.turn import AsyncTurn


@dataclass(frozen=True)
class AsyncToolContext:
    """What a tool works with."""

    sandbox: AsyncSandbox
    #: Characters kept of what is told.
    max_output: int
    #: Models call tools side by side, and two edits of one file must not lose one of them.
    turn: AsyncTurn


class AsyncRunTool(Protocol):
    """What a tool does with an input that was accepted; gives the text for the model."""

    async def __call__(self, given: Mapping[str, Any], context: AsyncToolContext) -> str: ...
