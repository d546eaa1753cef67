"""The way to a server that a sandbox is opened over."""

from __future__ import annotations

from typing import Optional

from agentfense import _server
from agentfense._async.client import AsyncSandboxClient
from agentfense._async.undo import AsyncUndo
from agentfense._face.async_face import run_blocking
from agentfense._face.completion import AsyncCompletion
from agentfense._sandbox.options import ServerOptions


class AsyncConnection:
    """A client, and what has to be let go of with it."""

    def __init__(
        self, client: AsyncSandboxClient, *, is_own: bool = False, lease: Optional[_server.Lease] = None
    ) -> None:
        self.client = client
        self._is_own = is_own
        self._lease = lease

    async def release(self) -> None:
        """Ends what was begun for it, and nothing that was handed in."""
        if not self._is_own:
            return
        self._is_own = False
        try:
            await self.client.close()
        finally:
            if self._lease is not None:
                await run_blocking(self._lease.close)


async def connect(
    undo: AsyncUndo, options: ServerOptions, client: Optional[AsyncSandboxClient], *, may_be_private: bool = False
) -> AsyncConnection:
    """Connects to what the caller names: a client, which stays open whatever becomes of the sandbox, or else a server.

    Who names nothing gets a private server, if the sandbox brings all that it needs; that ends with the last sandbox
    of this process on it.
    """
    if client is not None:
        return AsyncConnection(client)
    lease = await _leased(undo) if may_be_private and options.names_no_server else None
    connection = AsyncConnection(_client_of(options, lease), is_own=True, lease=lease)
    undo.add(connection.release)
    return connection


async def _leased(undo: AsyncUndo) -> _server.Lease:
    async def take() -> _server.Lease:
        lease = await run_blocking(_server.lease)
        undo.add(lambda: run_blocking(lease.close))
        return lease

    return await AsyncCompletion.of(take)


def _client_of(options: ServerOptions, lease: Optional[_server.Lease]) -> AsyncSandboxClient:
    return AsyncSandboxClient(
        options.endpoint if lease is None else lease.endpoint,
        options.secure,
        api_key=options.api_key,
        tls=options.tls,
        request_timeout=options.request_timeout,
        retries=options.retries,
    )
