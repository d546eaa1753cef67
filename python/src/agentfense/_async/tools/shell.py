"""Commands and what they changed, for models."""

from __future__ import annotations

from typing import Any, Mapping

from agentfense._async.tools.context import AsyncToolContext
from agentfense._tools.bounds import keep_lines
from agentfense._tools.command_text import command_text
from agentfense._tools.declaration import SHELL_TIMEOUT_MS
from agentfense.types import Change


async def shell(given: Mapping[str, Any], context: AsyncToolContext) -> str:
    """Runs a command line."""
    timeout_ms = given.get("timeout_ms", SHELL_TIMEOUT_MS)
    result = await context.sandbox.run(given["command"], timeout=timeout_ms / 1000, workdir=given.get("workdir"))
    return command_text(result, timeout_ms, context.max_output)


async def changes(given: Mapping[str, Any], context: AsyncToolContext) -> str:
    """Lists what was changed."""
    lines = [_line_for(change) for change in await context.sandbox.changes()]
    return keep_lines(lines, context.max_output, "these are the first") if lines else "(nothing)"


def _line_for(change: Change) -> str:
    origin = f" (was {change.old_path[1:]})" if change.old_path else ""
    return f"{change.kind} {change.path[1:]}{origin}"
