"""What commands have in common, wherever they run."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from agentfense._async.client_calls import AsyncCalls
from agentfense._async.client_stream import AsyncAnswers, AsyncCallStream
from agentfense._connection.method import Method, Req
from agentfense._messages.command import command_event_of, command_text, exec_result_of
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import CommandTimeoutError, ConnectionError
from agentfense.types import Command, CommandEvent, ExecResult, ExitEvent


async def result_of(
    calls: AsyncCalls,
    method: Method[Req, sandbox_pb2.ExecResult],
    request: Req,
    command: Command,
    timeout: Optional[float],
    check: bool,
) -> ExecResult:
    """The result of a command. A timeout is an error on the wire and a result here, unless `check` is wanted."""
    try:
        result = exec_result_of(await calls.command(method, request, timeout), command)
    except CommandTimeoutError as error:
        result = replace(error.result, command=command_text(command))
    return result.raise_on_error() if check else result


def events_of(answers: AsyncAnswers[sandbox_pb2.ExecOutput], command: Command) -> AsyncCallStream[CommandEvent]:
    """The events of a command, the last of which is its end."""
    text = command_text(command)
    return AsyncCallStream(
        answers,
        command_event_of,
        is_last=lambda event: isinstance(event, ExitEvent),
        ended_early=lambda: ConnectionError(
            f"the server did not say how the command ended: {text}", code="CONNECTION_FAILED"
        ),
    )
