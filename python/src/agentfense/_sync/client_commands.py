# Generated from src/agentfense/_async/client_commands.py by scripts/generate_sync.py: change it there.
"""Commands in a sandbox."""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Optional, Union

from agentfense._connection.method import SandboxService
from agentfense._face.sync_face import Duplex
from agentfense._messages.command import exec_message
from agentfense._messages.content import pieces
from agentfense._messages.time import seconds_of
from agentfense._sync.client_base import ClientPart, content_pieces
from agentfense._sync.client_running import events_of, result_of
from agentfense._sync.client_stream import CallStream
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.types import Command, CommandEvent, ExecResult, Seconds


class CommandMethods(ClientPart):
    """The ways to run a command: a line for the shell, or a program and its arguments without one."""

    def exec(
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
        return result_of(self._calls, SandboxService.exec, request, command, seconds, check)

    def exec_stream(
        self,
        sandbox_id: str,
        command: Command,
        stdin: Union[str, bytes, None] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
    ) -> CallStream[CommandEvent]:
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
        stdin: Iterable[bytes],
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
    ) -> CallStream[CommandEvent]:
        """The same with input that comes while it runs; the end of the iterable is the end of the input."""
        start = exec_message(sandbox_id, command, None, env, workdir, timeout)
        patience = self._calls.patience_for(seconds_of(timeout, "timeout"))

        def requests() -> Iterator[sandbox_pb2.ExecInput]:
            yield sandbox_pb2.ExecInput(start=start)
            for data in content_pieces(stdin):
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
    ) -> CommandConnection:
        """Starts a command at once whose input is sent piece by piece."""
        start = exec_message(sandbox_id, command, None, env, workdir, timeout)
        patience = self._calls.patience_for(seconds_of(timeout, "timeout"))
        first = sandbox_pb2.ExecInput(start=start)
        duplex = self._calls.duplex(SandboxService.exec_interactive, first, timeout=patience)
        return CommandConnection(duplex, events_of(duplex, command))


class CommandConnection:
    """A command that runs: its events and its input. Closing it kills the command."""

    def __init__(
        self,
        call: Duplex[sandbox_pb2.ExecInput, sandbox_pb2.ExecOutput],
        events: CallStream[CommandEvent],
    ) -> None:
        self._call = call
        self._events = events

    def __iter__(self) -> CommandConnection:
        return self

    def __next__(self) -> CommandEvent:
        return self._events.__next__()

    def send(self, data: bytes) -> None:
        """Sends input. Returns when it is on its way; at once when the command is over."""
        for piece in pieces(data):
            self._call.send(sandbox_pb2.ExecInput(stdin=piece))

    def end(self) -> None:
        """Has the command read the end of its input."""
        self._call.send(sandbox_pb2.ExecInput(end=True))
        self._call.finish()

    def close(self) -> None:
        """Kills the command, unless it is over."""
        self._events.close()
