"""How a command is told to have ended where nobody else tells it."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any, Dict

from agentfense._sandbox.output import Collection
from agentfense.types import CommandEnd, ExecResult


def killed_end(duration: timedelta) -> CommandEnd:
    """Gives the end of a command that was told to die: the server says nothing more about it."""
    return CommandEnd(exit_code=128 + 9, signal="SIGKILL", duration=duration)


def collected_result(command: str, end: CommandEnd, stdout: Collection, stderr: Collection) -> ExecResult:
    """Puts an end and what was kept of the output together."""
    how: Dict[str, Any] = {field.name: getattr(end, field.name) for field in fields(CommandEnd)}
    stdout_bytes, stderr_bytes = stdout.content(), stderr.content()
    return ExecResult(
        **how,
        command=command,
        stdout=stdout_bytes.decode("utf-8", "replace"),
        stderr=stderr_bytes.decode("utf-8", "replace"),
        stdout_bytes=stdout_bytes,
        stderr_bytes=stderr_bytes,
        truncated=stdout.truncated or stderr.truncated,
    )
