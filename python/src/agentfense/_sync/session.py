# Generated from src/agentfense/_async/session.py by scripts/generate_sync.py: change it there.
"""A shell that keeps its state."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Optional, Type

from agentfense._sandbox.output import OutputCallback
from agentfense._sync.execution import Execution
from agentfense._sync.execution_start import start_session_command
from agentfense.exceptions import SandboxError, SessionClosedError, SessionNotFoundError
from agentfense.types import ExecResult, Seconds, SessionInfo, SessionStatus

if TYPE_CHECKING:
    from agentfense._sync.client import SandboxClient


class Session:
    """A shell that keeps its directory, variables, functions and background jobs from one command to the next.

    `Sandbox.session` makes one. The end of its `with` block closes it.
    """

    def __init__(self, client: SandboxClient, info: SessionInfo) -> None:
        self._client = client
        self._info = info
        self._closed = info.status is SessionStatus.CLOSED

    @property
    def info(self) -> SessionInfo:
        """What the server said of it when it was opened."""
        return self._info

    @property
    def id(self) -> str:
        """Its name on the server."""
        return self._info.id

    @property
    def sandbox_id(self) -> str:
        """The sandbox that it runs in."""
        return self._info.sandbox_id

    @property
    def shell(self) -> str:
        """The program that reads the commands."""
        return self._info.shell

    @property
    def closed(self) -> bool:
        """Whether it is over, as far as is known here: it was closed, or a command ended its shell."""
        return self._closed

    @property
    def status(self) -> SessionStatus:
        """The same as a word."""
        return SessionStatus.CLOSED if self._closed else SessionStatus.ACTIVE

    def exec(
        self,
        command: str,
        timeout: Optional[Seconds] = None,
        *,
        check: bool = False,
        on_stdout: Optional[OutputCallback] = None,
        on_stderr: Optional[OutputCallback] = None,
    ) -> ExecResult:
        """Runs a line and waits for its end. One that runs out of time is interrupted; the session stays.

        Args:
            command: A line for the shell.
            timeout: Seconds; default: the server's, usually 30; a private one has none.
            check: Raise CommandExecutionError on a non-zero exit code, and CommandTimeoutError when the time was up.
            on_stdout: Sees output as it comes.
            on_stderr: Sees complaints as they come.
        """
        self._require_open()
        if on_stdout is None and on_stderr is None:
            result = self._client.session_exec(self.id, command, timeout)
        else:
            with start_session_command(self._client, self.id, command, timeout, on_stdout, on_stderr) as execution:
                result = execution.wait()
        self._closed = self._closed or result.session_closed
        return result.raise_on_error() if check else result

    def stream(
        self,
        command: str,
        timeout: Optional[Seconds] = None,
        *,
        on_stdout: Optional[OutputCallback] = None,
        on_stderr: Optional[OutputCallback] = None,
    ) -> Execution:
        """Starts a line, whose output comes as it is printed. It takes no input."""
        self._require_open()
        return start_session_command(self._client, self.id, command, timeout, on_stdout, on_stderr)

    def close(self) -> None:
        """Ends the shell and all that runs in it.

        One that has ended already, by itself or with its sandbox, is no error.
        """
        if self._closed:
            return
        with suppress(SessionNotFoundError):
            self._client.destroy_session(self.id)
        self._closed = True

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            self.close()
        except SandboxError:
            # What went wrong first is what has to be heard of.
            if error is None:
                raise

    def _require_open(self) -> None:
        if self._closed:
            raise SessionClosedError(
                "the session is closed",
                code="SESSION_CLOSED",
                hint="open another one with sandbox.session()",
                details={"session_id": self.id},
            )
