"""Sessions: shells that keep their state."""

from __future__ import annotations

from typing import List, Mapping, Optional

from agentfense._async.client_base import AsyncClientPart
from agentfense._async.client_running import events_of, result_of
from agentfense._async.client_stream import AsyncCallStream
from agentfense._connection.method import SandboxService
from agentfense._messages.numbers import strings
from agentfense._messages.sandbox import session_of
from agentfense._messages.time import duration_message, seconds_of
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.types import CommandEvent, ExecResult, Seconds, SessionInfo


class AsyncSessionMethods(AsyncClientPart):
    """The life of a session, and what runs in it."""

    async def _create_session(
        self,
        sandbox_id: str,
        shell: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        *,
        workdir: Optional[str] = None,
        idle_timeout: Optional[Seconds] = None,
    ) -> SessionInfo:
        """What the server says of a new one."""
        request = sandbox_pb2.CreateSessionRequest(
            sandbox_id=sandbox_id,
            shell=shell or "",
            env=strings(env, "env"),
            workdir=workdir or "",
            idle_timeout=duration_message(idle_timeout, "idle_timeout"),
        )
        return session_of(await self._calls.unary(SandboxService.create_session, request))

    async def get_session(self, session_id: str) -> SessionInfo:
        """One session, also one that is closed."""
        request = sandbox_pb2.GetSessionRequest(session_id=session_id)
        return session_of(await self._calls.unary(SandboxService.get_session, request))

    async def list_sessions(self, sandbox_id: str) -> List[SessionInfo]:
        """The sessions of a sandbox."""
        request = sandbox_pb2.ListSessionsRequest(sandbox_id=sandbox_id)
        answer = await self._calls.unary(SandboxService.list_sessions, request)
        return [session_of(session) for session in answer.sessions]

    async def destroy_session(self, session_id: str) -> None:
        """Ends its shell and all that runs in it."""
        request = sandbox_pb2.DestroySessionRequest(session_id=session_id)
        await self._calls.unary(SandboxService.destroy_session, request)

    async def close_session(self, session_id: str) -> None:
        """The same as destroy_session."""
        await self.destroy_session(session_id)

    async def session_exec(
        self, session_id: str, command: str, timeout: Optional[Seconds] = None, *, check: bool = False
    ) -> ExecResult:
        """Runs a line in the session's shell and waits for its end.

        Args:
            session_id: Where.
            command: A line for the shell.
            timeout: Seconds; default: the server's, usually 30; a private one has none.
            check: Raise CommandExecutionError on a non-zero exit code, and CommandTimeoutError when the time was up.
        """
        request = _session_exec_message(session_id, command, timeout)
        seconds = seconds_of(timeout, "timeout")
        return await result_of(self._calls, SandboxService.session_exec, request, command, seconds, check)

    def session_exec_stream(
        self, session_id: str, command: str, timeout: Optional[Seconds] = None
    ) -> AsyncCallStream[CommandEvent]:
        """Starts a line in the session's shell at once, and gives its output as it comes, then its end."""
        request = _session_exec_message(session_id, command, timeout)
        patience = self._calls.patience_for(seconds_of(timeout, "timeout"))
        answers = self._calls.server_stream(SandboxService.session_exec_stream, request, timeout=patience)
        return events_of(answers, command)


def _session_exec_message(session_id: str, command: str, timeout: Optional[Seconds]) -> sandbox_pb2.SessionExecRequest:
    return sandbox_pb2.SessionExecRequest(
        session_id=session_id, command=command, timeout=duration_message(timeout, "timeout")
    )
