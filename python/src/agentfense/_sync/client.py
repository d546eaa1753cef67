# Generated from src/agentfense/_async/client.py by scripts/generate_sync.py: change it there.
"""The client: every call of the contract, one method each."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Mapping, Optional, Type

from agentfense._connection.endpoint import choose_endpoint
from agentfense._face.completion import Completion
from agentfense._face.sync_face import Transport, opening
from agentfense._messages.numbers import count
from agentfense._messages.time import seconds_of
from agentfense._sync.client_calls import Calls
from agentfense._sync.client_changes import ChangeMethods
from agentfense._sync.client_code import CodeMethods
from agentfense._sync.client_codebases import CodebaseMethods
from agentfense._sync.client_commands import CommandMethods
from agentfense._sync.client_events import EventMethods
from agentfense._sync.client_ports import PortMethods
from agentfense._sync.client_processes import ProcessMethods
from agentfense._sync.client_sandboxes import SandboxMethods
from agentfense._sync.client_sessions import SessionMethods
from agentfense._sync.client_system import SystemMethods
from agentfense._sync.client_terminal import TerminalMethods
from agentfense._sync.client_uploads import UploadMethods
from agentfense._sync.client_view import ViewMethods
from agentfense._sync.session import Session
from agentfense._sync.undo import Undo
from agentfense.types import Seconds, SessionInfo, TlsOptions


class SandboxClient(
    CodebaseMethods,
    UploadMethods,
    SandboxMethods,
    CommandMethods,
    SessionMethods,
    ProcessMethods,
    CodeMethods,
    ChangeMethods,
    ViewMethods,
    TerminalMethods,
    PortMethods,
    EventMethods,
    SystemMethods,
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
        self._calls = Calls(Transport(place), patience, count(retries, "retries"))

    @property
    def name(self) -> str:
        """The server's address."""
        return self._calls.name

    @opening
    def create_session(
        self,
        sandbox_id: str,
        shell: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        *,
        workdir: Optional[str] = None,
        idle_timeout: Optional[Seconds] = None,
    ) -> Session:
        """Opens a shell that keeps its directory, variables and functions from one command to the next.

        Args:
            sandbox_id: Where.
            shell: Default: the sandbox's first one.
            env: Variables for all of its commands, besides those of the sandbox.
            workdir: Where it begins: absolute, or relative to the workspace; default /workspace.
            idle_timeout: Seconds without a command after which the server closes it.
        """
        with Undo() as undo:

            def make() -> SessionInfo:
                made = self._create_session(sandbox_id, shell, env, workdir=workdir, idle_timeout=idle_timeout)
                undo.add(lambda: self.destroy_session(made.id))
                return made

            return Session(self, Completion.of(make))

    session = create_session

    def close(self) -> None:
        """Lets go of the connection; what still runs over it fails."""
        self._calls.close()

    def __enter__(self) -> SandboxClient:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()
