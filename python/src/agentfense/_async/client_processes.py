"""Processes that outlive their call, as the client starts and finds them."""

from __future__ import annotations

from typing import List, Mapping, Optional, Tuple, Union

from agentfense._async.client_base import AsyncClientPart
from agentfense._async.client_stream import AsyncCallStream
from agentfense._connection.method import SandboxService
from agentfense._messages.content import pieces
from agentfense._messages.process import (
    process_event_of,
    process_of,
    process_request,
    size_message,
    start_process_message,
)
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import ConnectionError
from agentfense.types import Command, ProcessEvent, ProcessInfo, Seconds


class AsyncProcessMethods(AsyncClientPart):
    """Processes. Each is known by its number or its tag: the newest that has it, living before ended."""

    async def start_process(
        self,
        sandbox_id: str,
        command: Command,
        *,
        tag: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        stdin: bool = False,
        terminal: Optional[Tuple[int, int]] = None,
        timeout: Optional[Seconds] = None,
    ) -> ProcessInfo:
        """Starts a process that outlives the call and the connection.

        Args:
            sandbox_id: Where.
            command: A line for the shell, or a program and its arguments.
            tag: Another name for it: a letter, then letters, digits, dots, underscores and hyphens.
            env: Variables, besides those of the sandbox.
            workdir: Absolute, or relative to the workspace; default /workspace.
            stdin: Whether it has an input. Otherwise it reads an end of file.
            terminal: Columns and rows of a terminal of its own, which has an input always.
            timeout: Seconds, after which it is killed with all that it started; default: never.
        """
        request = start_process_message(
            sandbox_id,
            command,
            tag=tag,
            env=env,
            workdir=workdir,
            stdin=stdin,
            terminal=terminal,
            timeout=timeout,
        )
        return process_of(await self._calls.unary(SandboxService.start_process, request))

    async def list_processes(self, sandbox_id: str) -> List[ProcessInfo]:
        """What runs in the sandbox, also commands, sessions and terminals; then started processes that ended lately."""
        request = sandbox_pb2.ListProcessesRequest(sandbox_id=sandbox_id)
        answer = await self._calls.unary(SandboxService.list_processes, request)
        return [process_of(process) for process in answer.processes]

    async def attach_process(
        self, sandbox_id: str, process: Union[int, str], *, skip_kept: bool = False
    ) -> AsyncCallStream[ProcessEvent]:
        """What is kept of its output, unless `skip_kept`, then what comes, then its end; attached when this returns."""
        request = process_request(sandbox_id, process)
        request.skip_kept = skip_kept
        answers = self._calls.server_stream(SandboxService.attach_process, request)
        try:
            # The first message says that the caller is attached.
            await answers.__anext__()
        except StopAsyncIteration:
            raise _ended_early() from None
        return AsyncCallStream(
            answers, process_event_of, is_last=lambda event: event.end is not None, ended_early=_ended_early
        )

    async def send_input(self, sandbox_id: str, process: Union[int, str], data: Union[str, bytes]) -> None:
        """Returns when the process has room for it."""
        which = process_request(sandbox_id, process)
        for piece in pieces(data):
            request = sandbox_pb2.SendInputRequest(
                sandbox_id=sandbox_id, number=which.number, tag=which.tag, data=piece
            )
            await self._calls.command(SandboxService.send_input, request, None)

    async def close_input(self, sandbox_id: str, process: Union[int, str]) -> None:
        """The process reads the end of its input."""
        await self._calls.unary(SandboxService.close_input, process_request(sandbox_id, process))

    async def signal_process(self, sandbox_id: str, process: Union[int, str], signal: Union[str, int]) -> None:
        """To the process and all that it started: "SIGTERM", "TERM" or 15. SIGKILL leaves nothing of it."""
        which = process_request(sandbox_id, process)
        # A member of signal.Signals is its number.
        text = str(int(signal)) if isinstance(signal, int) else signal
        request = sandbox_pb2.SignalProcessRequest(
            sandbox_id=sandbox_id,
            number=which.number,
            tag=which.tag,
            signal=text,
        )
        await self._calls.unary(SandboxService.signal_process, request)

    async def resize_process(self, sandbox_id: str, process: Union[int, str], columns: int, rows: int) -> None:
        """Gives the terminal of a process another size."""
        which = process_request(sandbox_id, process)
        request = sandbox_pb2.ResizeProcessRequest(
            sandbox_id=sandbox_id, number=which.number, tag=which.tag, size=size_message(columns, rows)
        )
        await self._calls.unary(SandboxService.resize_process, request)

    async def wait_process(self, sandbox_id: str, process: Union[int, str]) -> ProcessInfo:
        """Returns when it has ended, however long that takes."""
        request = process_request(sandbox_id, process)
        return process_of(await self._calls.command(SandboxService.wait_process, request, None))


def _ended_early() -> ConnectionError:
    return ConnectionError("the server did not say how the process ended", code="CONNECTION_FAILED")
