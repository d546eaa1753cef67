# Generated from src/agentfense/_async/client_running.py by scripts/generate_sync.py: change it there.
"""What commands have in common, wherever they run."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from agentfense._connection.method import Method, Req
from agentfense._messages.command import command_event_of, command_text, exec_result_of
from agentfense._sync.client_calls import Calls
from agentfense._sync.client_stream import Answers, CallStream
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import CommandTimeoutError, ConnectionError
from agentfense.types import Command, CommandEvent, ExecResult, ExitEvent


def result_of(
    calls: Calls,
    method: Method[Req, sandbox_pb2.ExecResult],
    request: Req,
    command: Command,
    timeout: Optional[float],
    check: bool,
) -> ExecResult:
    """The result of a command. A timeout is an error on the wire and a result here, unless `check` is wanted."""
    try:
        result = exec_result_of(calls.command(method, request, timeout), command)
    except CommandTimeoutError as error:
        result = replace(error.result, command=command_text(command))
    return result.raise_on_error() if check else result


def events_of(answers: Answers[sandbox_pb2.ExecOutput], command: Command) -> CallStream[CommandEvent]:
    """The events of a command, the last of which is its end."""
    text = command_text(command)
    return CallStream(
        answers,
        command_event_of,
        is_last=lambda event: isinstance(event, ExitEvent),
        ended_early=lambda: ConnectionError(
            f"the server did not say how the command ended: {text}", code="CONNECTION_FAILED"
        ),
    )
