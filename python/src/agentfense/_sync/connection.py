# Generated from src/agentfense/_async/connection.py by scripts/generate_sync.py: change it there.
"""The way to a server that a sandbox is opened over."""

from __future__ import annotations

from typing import Optional

from agentfense import _server
from agentfense._face.completion import Completion
from agentfense._face.sync_face import run_blocking
from agentfense._sandbox.options import ServerOptions
from agentfense._sync.client import SandboxClient
from agentfense._sync.undo import Undo


class Connection:
    """A client, and what has to be let go of with it."""

    def __init__(self, client: SandboxClient, *, is_own: bool = False, lease: Optional[_server.Lease] = None) -> None:
        self.client = client
        self._is_own = is_own
        self._lease = lease

    def release(self) -> None:
        """Ends what was begun for it, and nothing that was handed in."""
        if not self._is_own:
            return
        self._is_own = False
        try:
            self.client.close()
        finally:
            if self._lease is not None:
                run_blocking(self._lease.close)


def connect(
    undo: Undo, options: ServerOptions, client: Optional[SandboxClient], *, may_be_private: bool = False
) -> Connection:
    """Connects to what the caller names: a client, which stays open whatever becomes of the sandbox, or else a server.

    Who names nothing gets a private server, if the sandbox brings all that it needs; that ends with the last sandbox
    of this process on it.
    """
    if client is not None:
        return Connection(client)
    lease = _leased(undo) if may_be_private and options.names_no_server else None
    connection = Connection(_client_of(options, lease), is_own=True, lease=lease)
    undo.add(connection.release)
    return connection


def _leased(undo: Undo) -> _server.Lease:
    def take() -> _server.Lease:
        lease = run_blocking(_server.lease)
        undo.add(lambda: run_blocking(lease.close))
        return lease

    return Completion.of(take)


def _client_of(options: ServerOptions, lease: Optional[_server.Lease]) -> SandboxClient:
    return SandboxClient(
        options.endpoint if lease is None else lease.endpoint,
        options.secure,
        api_key=options.api_key,
        tls=options.tls,
        request_timeout=options.request_timeout,
        retries=options.retries,
    )
