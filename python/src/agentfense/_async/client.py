"""The client: every call of the contract, one method each."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Mapping, Optional, Type

from agentfense._async.client_calls import AsyncCalls
from agentfense._async.client_changes import AsyncChangeMethods
from agentfense._async.client_code import AsyncCodeMethods
from agentfense._async.client_codebases import AsyncCodebaseMethods
from agentfense._async.client_commands import AsyncCommandMethods
from agentfense._async.client_events import AsyncEventMethods
from agentfense._async.client_ports import AsyncPortMethods
from agentfense._async.client_processes import AsyncProcessMethods
from agentfense._async.client_sandboxes import AsyncSandboxMethods
from agentfense._async.client_sessions import AsyncSessionMethods
from agentfense._async.client_system import AsyncSystemMethods
from agentfense._async.client_terminal import AsyncTerminalMethods
from agentfense._async.client_uploads import AsyncUploadMethods
from agentfense._async.client_view import AsyncViewMethods
from agentfense._async.session import AsyncSession
from agentfense._async.undo import AsyncUndo
from agentfense._connection.endpoint import choose_endpoint
from agentfense._face.async_face import Transport, opening
from agentfense._face.completion import AsyncCompletion
from agentfense._messages.numbers import count
from agentfense._messages.time import seconds_of
from agentfense.types import Seconds, SessionInfo, TlsOptions


class AsyncSandboxClient(
    AsyncCodebaseMethods,
    AsyncUploadMethods,
    AsyncSandboxMethods,
    AsyncCommandMethods,
    AsyncSessionMethods,
    AsyncProcessMethods,
    AsyncCodeMethods,
    AsyncChangeMethods,
    AsyncViewMethods,
    AsyncTerminalMethods,
    AsyncPortMethods,
    AsyncEventMethods,
    AsyncSystemMethods,
):
    """Every call of the contract, one method each. Nothing is sent before the first one.

    Everything that goes wrong is a SandboxError. Calls that may be repeated are, when the server cannot be reached or
    is busy; whoever is interrupted while waiting for a command ends it.
    """

    def __init__(
        self,
        endpoint: Optional[str] = None,
        secure: Optional[bool] = None,
        *,
        api_key: Optional[str] = None,
        tls: Optional[TlsOptions] = None,
        request_timeout: Optional[Seconds] = 60.0,
        retries: int = 3,
    ) -> None:
        """Says where the server is.

        Args:
            endpoint: "host:port", "http://…", "https://…" or "unix:/path"; default: AGENTFENSE_ENDPOINT.
            secure: Whether a "host:port" speaks TLS.
            api_key: Default: AGENTFENSE_API_KEY.
            tls: Certificates, where the usual ones are not enough.
            request_timeout: Seconds for every call that is not a stream and does not run a command; None is for ever.
                A command has its own timeout, and this for the way.
            retries: How often an idempotent call is tried again; 0 is never.
        """
        place = choose_endpoint(endpoint, secure, api_key, tls, os.environ)
        patience = seconds_of(request_timeout, "request_timeout")
        self._calls = AsyncCalls(Transport(place), patience, count(retries, "retries"))

    @property
    def name(self) -> str:
        """The server's address."""
        return self._calls.name

    @opening
    async def create_session(
        self,
        sandbox_id: str,
        shell: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        *,
        workdir: Optional[str] = None,
        idle_timeout: Optional[Seconds] = None,
    ) -> AsyncSession:
        """Opens a shell that keeps its directory, variables and functions from one command to the next.

        Args:
            sandbox_id: Where.
            shell: Default: the sandbox's first one.
            env: Variables for all of its commands, besides those of the sandbox.
            workdir: Where it begins: absolute, or relative to the workspace; default /workspace.
            idle_timeout: Seconds without a command after which the server closes it.
        """
        async with AsyncUndo() as undo:

            async def make() -> SessionInfo:
                made = await self._create_session(sandbox_id, shell, env, workdir=workdir, idle_timeout=idle_timeout)
                undo.add(lambda: self.destroy_session(made.id))
                return made

            return AsyncSession(self, await AsyncCompletion.of(make))

    session = create_session

    async def close(self) -> None:
        """Lets go of the connection; what still runs over it fails."""
        await self._calls.close()

    async def __aenter__(self) -> AsyncSandboxClient:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()
