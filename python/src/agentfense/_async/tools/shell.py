"""Commands and what they changed, for models."""

from __future__ import annotations

from typing import Any, Mapping

from agentfense._async.tools.context import AsyncToolContext
from agentfense._tools.bounds import keep_lines
from agentfense._tools.command_text import command_text
from agentfense._tools.declaration import SHELL_TIMEOUT_MS
from agentfense.types import Change, ChangeCounts


async def shell(given: Mapping[str, Any], context: AsyncToolContext) -> str:
    """Runs a command line."""
    timeout_ms = given.get("timeout_ms", SHELL_TIMEOUT_MS)
    result = await context.sandbox.run(given["command"], timeout=timeout_ms / 1000, workdir=given.get("workdir"))
    return command_text(result, timeout_ms, context.max_output)


async def changes(given: Mapping[str, Any], context: AsyncToolContext) -> str:
    """Lists what was changed."""
    lines = [_line_for(change) for change in await context.sandbox.changes(fold=True)]
    return keep_lines(lines, context.max_output, "these are the first") if lines else "(nothing)"


def _line_for(change: Change) -> str:
    if change.folded is not None:
        return f"ignored by git in {change.path[1:] or '.'}: {_counts_text(change.folded)}"
    origin = f" (was {change.old_path[1:]})" if change.old_path else ""
    return f"{change.kind} {change.path[1:]}{origin}"


def _counts_text(counts: ChangeCounts) -> str:
    kinds = {
        "added": counts.added,
        "modified": counts.modified,
        "deleted": counts.deleted,
        "renamed": counts.renamed,
    }
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count > 0)
