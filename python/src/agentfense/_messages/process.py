"""Processes that outlive their call."""

from __future__ import annotations

from typing import Mapping, Optional, Tuple, Union

from agentfense._messages.command import arguments, command_text
from agentfense._messages.numbers import count, strings
from agentfense._messages.time import duration_message, moment, moment_or_none
from agentfense._messages.words import PROCESS_KINDS
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.types import Command, ProcessEnd, ProcessEvent, ProcessInfo, Seconds

_LARGEST_NUMBER = 2**32 - 1
_LARGEST_SIDE = 2**16 - 1
_KINDS = {
    sandbox_pb2.ProcessOutput.OUTPUT_TYPE_STDERR: "stderr",
    sandbox_pb2.ProcessOutput.OUTPUT_TYPE_TERMINAL: "terminal",
}


def start_process_message(
    sandbox_id: str,
    command: Command,
    *,
    tag: Optional[str],
    env: Optional[Mapping[str, str]],
    workdir: Optional[str],
    stdin: bool,
    terminal: Optional[Tuple[int, int]],
    timeout: Optional[Seconds],
) -> sandbox_pb2.StartProcessRequest:
    """A process on its way to the server."""
    request = sandbox_pb2.StartProcessRequest(
        sandbox_id=sandbox_id,
        tag=tag or "",
        env=strings(env, "env"),
        workdir=workdir or "",
        stdin=stdin,
        terminal=None if terminal is None else size_message(*terminal),
        timeout=duration_message(timeout, "timeout"),
    )
    if isinstance(command, str):
        request.command = command
    else:
        request.argv.extend(arguments(command))
    return request


def size_message(columns: int, rows: int) -> sandbox_pb2.TerminalSize:
    """The size of a terminal's window."""
    return sandbox_pb2.TerminalSize(
        columns=count(columns, "columns", _LARGEST_SIDE), rows=count(rows, "rows", _LARGEST_SIDE)
    )


def process_request(sandbox_id: str, process: Union[int, str]) -> sandbox_pb2.ProcessRequest:
    """Which process is meant."""
    if isinstance(process, str):
        return sandbox_pb2.ProcessRequest(sandbox_id=sandbox_id, tag=process)
    return sandbox_pb2.ProcessRequest(sandbox_id=sandbox_id, number=count(process, "process", _LARGEST_NUMBER))


def process_of(message: sandbox_pb2.Process) -> ProcessInfo:
    """A process as the server sees it."""
    has_ended = message.HasField("exit_code")
    return ProcessInfo(
        number=message.number,
        sandbox_id=message.sandbox_id,
        tag=message.tag,
        owner_id=message.owner_id,
        kind=PROCESS_KINDS.word(message.kind),
        command=command_text(list(message.argv)) if message.argv else message.command,
        state="ended" if message.state == sandbox_pb2.PROCESS_STATE_ENDED else "running",
        started_at=moment(message.started_at),
        ended_at=moment_or_none(message.HasField("ended_at"), message.ended_at),
        end=_end_of(message) if has_ended else None,
    )


def process_event_of(message: sandbox_pb2.ProcessOutput) -> ProcessEvent:
    """Output, or the end, which is the one with an exit code."""
    if message.HasField("exit_code"):
        return ProcessEvent("exit", end=_end_of(message))
    return ProcessEvent(_KINDS.get(message.type, "stdout"), message.data, message.lost_bytes)


def _end_of(message: Union[sandbox_pb2.Process, sandbox_pb2.ProcessOutput]) -> ProcessEnd:
    return ProcessEnd(message.exit_code, message.signal or None, message.timed_out, message.out_of_memory)
