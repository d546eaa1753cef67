"""Commands, what they print and how they end."""

from __future__ import annotations

import shlex
from typing import Mapping, Optional, Sequence, Union

from agentfense._messages.numbers import strings
from agentfense._messages.time import duration_message, timedelta_of
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import InvalidConfigurationError
from agentfense.types import (
    Command,
    CommandEnd,
    CommandEvent,
    ExecResult,
    ExitEvent,
    Seconds,
    StderrEvent,
    StdoutEvent,
)


def exec_message(
    sandbox_id: str,
    command: Command,
    stdin: Union[str, bytes, None] = None,
    env: Optional[Mapping[str, str]] = None,
    workdir: Optional[str] = None,
    timeout: Optional[Seconds] = None,
) -> sandbox_pb2.ExecRequest:
    """A command on its way to the server."""
    request = sandbox_pb2.ExecRequest(
        sandbox_id=sandbox_id,
        env=strings(env, "env"),
        workdir=workdir or "",
        timeout=duration_message(timeout, "timeout"),
    )
    if isinstance(command, str):
        request.command = command
    else:
        request.argv.extend(arguments(command))
    if isinstance(stdin, str):
        request.stdin = stdin
    elif stdin is not None:
        request.stdin_bytes = bytes(stdin)
    return request


def arguments(command: Sequence[str]) -> Sequence[str]:
    """A program and its arguments, of which there is at least the program."""
    words: object = command
    if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        raise InvalidConfigurationError("a command is a string, or a list of strings")
    if len(command) == 0:
        raise InvalidConfigurationError("a command without a shell needs a program")
    return command


def command_text(command: Command) -> str:
    """A command as somebody would type it."""
    return command if isinstance(command, str) else shlex.join(command)


def exec_result_of(message: sandbox_pb2.ExecResult, command: Command) -> ExecResult:
    """All that a command printed, and how it ended."""
    return ExecResult(
        exit_code=message.exit_code,
        signal=message.signal or None,
        timed_out=message.timed_out,
        out_of_memory=message.out_of_memory,
        duration=timedelta_of(message.duration),
        session_closed=message.session_closed,
        synced_version=message.synced_version,
        sync_problems=tuple(message.sync_problems),
        command=command_text(command),
        stdout=message.stdout,
        stderr=message.stderr,
        # Sent only where the text is not all of it.
        stdout_bytes=message.stdout_bytes or message.stdout.encode(),
        stderr_bytes=message.stderr_bytes or message.stderr.encode(),
        truncated=message.truncated,
    )


def command_event_of(message: sandbox_pb2.ExecOutput) -> CommandEvent:
    """Output, or the end, which is the one with an exit code."""
    if message.HasField("exit_code"):
        return ExitEvent(_end_of(message))
    if message.type == sandbox_pb2.ExecOutput.OUTPUT_TYPE_STDERR:
        return StderrEvent(message.data)
    return StdoutEvent(message.data)


def _end_of(message: sandbox_pb2.ExecOutput) -> CommandEnd:
    return CommandEnd(
        exit_code=message.exit_code,
        signal=message.signal or None,
        timed_out=message.timed_out,
        out_of_memory=message.out_of_memory,
        duration=timedelta_of(message.duration),
        session_closed=message.session_closed,
        synced_version=message.synced_version,
        sync_problems=tuple(message.sync_problems),
    )
