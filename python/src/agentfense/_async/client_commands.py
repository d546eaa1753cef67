"""Commands in a sandbox."""

from __future__ import annotations

from typing import AsyncIterable, AsyncIterator, Mapping, Optional, Union

from agentfense._async.client_base import AsyncClientPart, content_pieces
from agentfense._async.client_running import events_of, result_of
from agentfense._async.client_stream import AsyncCallStream
from agentfense._connection.method import SandboxService
from agentfense._face.async_face import Duplex
from agentfense._messages.command import exec_message
from agentfense._messages.content import pieces
from agentfense._messages.time import seconds_of
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.types import Command, CommandEvent, ExecResult, Seconds


class AsyncCommandMethods(AsyncClientPart):
    """The ways to run a command: a line for the shell, or a program and its arguments without one."""

    async def exec(
        self,
        sandbox_id: str,
        command: Command,
        stdin: Union[str, bytes, None] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
        *,
        check: bool = False,
    ) -> ExecResult:
        """Runs a command and waits for its end.

        Args:
            sandbox_id: Where.
            command: A line for the shell, or a list of a program and its arguments.
            stdin: All of its input.
            env: Variables, besides those of the sandbox.
            workdir: Absolute, or relative to the workspace; default /workspace.
            timeout: Seconds; default: the server's, usually 30; a private one has none.
            check: Raise CommandExecutionError on a non-zero exit code, and CommandTimeoutError when the time was up.
        """
        request = exec_message(sandbox_id, command, stdin, env, workdir, timeout)
        seconds = seconds_of(timeout, "timeout")
        return await result_of(self._calls, SandboxService.exec, request, command, seconds, check)

    def exec_stream(
        self,
        sandbox_id: str,
        command: Command,
        stdin: Union[str, bytes, None] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
    ) -> AsyncCallStream[CommandEvent]:
        """Starts a command at once, and gives its output as it comes, then its end. Leaving the loop kills it."""
        request = exec_message(sandbox_id, command, stdin, env, workdir, timeout)
        patience = self._calls.patience_for(seconds_of(timeout, "timeout"))
        answers = self._calls.server_stream(SandboxService.exec_stream, request, timeout=patience)
        return events_of(answers, command)

    def exec_interactive(
        self,
        sandbox_id: str,
        command: Command,
        *,
        stdin: AsyncIterable[bytes],
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
    ) -> AsyncCallStream[CommandEvent]:
        """The same with input that comes while it runs; the end of the iterable is the end of the input."""
        start = exec_message(sandbox_id, command, None, env, workdir, timeout)
        patience = self._calls.patience_for(seconds_of(timeout, "timeout"))

        async def requests() -> AsyncIterator[sandbox_pb2.ExecInput]:
            yield sandbox_pb2.ExecInput(start=start)
            async for data in content_pieces(stdin):
                yield sandbox_pb2.ExecInput(stdin=data)
            yield sandbox_pb2.ExecInput(end=True)

        answers = self._calls.exchange(SandboxService.exec_interactive, requests(), timeout=patience)
        return events_of(answers, command)

    def _open_command(
        self,
        sandbox_id: str,
        command: Command,
        *,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
    ) -> AsyncCommandConnection:
        """Starts a command at once whose input is sent piece by piece."""
        start = exec_message(sandbox_id, command, None, env, workdir, timeout)
        patience = self._calls.patience_for(seconds_of(timeout, "timeout"))
        first = sandbox_pb2.ExecInput(start=start)
        duplex = self._calls.duplex(SandboxService.exec_interactive, first, timeout=patience)
        return AsyncCommandConnection(duplex, events_of(duplex, command))


class AsyncCommandConnection:
    """A command that runs: its events and its input. Closing it kills the command."""

    def __init__(
        self,
        call: Duplex[sandbox_pb2.ExecInput, sandbox_pb2.ExecOutput],
        events: AsyncCallStream[CommandEvent],
    ) -> None:
        self._call = call
        self._events = events

    def __aiter__(self) -> AsyncCommandConnection:
        return self

    async def __anext__(self) -> CommandEvent:
        return await self._events.__anext__()

    async def send(self, data: bytes) -> None:
        """Sends input. Returns when it is on its way; at once when the command is over."""
        for piece in pieces(data):
            await self._call.send(sandbox_pb2.ExecInput(stdin=piece))

    async def end(self) -> None:
        """Has the command read the end of its input."""
        await self._call.send(sandbox_pb2.ExecInput(end=True))
        await self._call.finish()

    async def close(self) -> None:
        """Kills the command, unless it is over."""
        await self._events.close()

    # async only
    async def aclose(self) -> None:
        """The same, under the name that asynchronous generators have for it."""
        await self.close()

    # end async only
