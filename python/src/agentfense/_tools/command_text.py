"""A command that ran, in words."""

from __future__ import annotations

from typing import Iterator

from agentfense._tools.bounds import keep_ends
from agentfense.types import ExecResult


def command_text(result: ExecResult, timeout_ms: int, max_output: int) -> str:
    """What it printed, and how it ended unless that was well."""
    output = keep_ends(_output_of(result), max_output)
    return "\n".join([*([output] if output else []), *_remarks_on(result, timeout_ms)]) or "(no output)"


def _output_of(result: ExecResult) -> str:
    complaints = f"[stderr]\n{result.stderr.rstrip()}" if result.stderr else ""
    return "\n".join(part for part in (result.stdout.rstrip(), complaints) if part)


def _remarks_on(result: ExecResult, timeout_ms: int) -> Iterator[str]:
    if result.truncated:
        yield "[some output was beyond the limit and is lost]"
    if result.out_of_memory:
        yield "[it ran out of memory]"
    if result.timed_out:
        yield f"[ended after {timeout_ms} ms: its time was up]"
    elif not result.success:
        yield f"[exit code {result.exit_code}]"
