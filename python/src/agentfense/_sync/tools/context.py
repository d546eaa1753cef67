# Generated from src/agentfense/_async/tools/context.py by scripts/generate_sync.py: change it there.
"""What a tool works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

from typing_extensions import Protocol

from agentfense._face.turn import Turn
from agentfense._sync.sandbox import Sandbox


@dataclass(frozen=True)
class ToolContext:
    """What a tool works with."""

    sandbox: Sandbox
    #: Characters kept of what is told.
    max_output: int
    #: Models call tools side by side, and two edits of one file must not lose one of them.
    turn: Turn


class RunTool(Protocol):
    """What a tool does with an input that was accepted; gives the text for the model."""

    def __call__(self, given: Mapping[str, Any], context: ToolContext) -> str: ...
