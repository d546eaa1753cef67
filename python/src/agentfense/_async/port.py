"""A port of a sandbox."""

from __future__ import annotations

from datetime import datetime

from agentfense._async.client import AsyncSandboxClient
from agentfense._async.client_ports import AsyncPortConnection
from agentfense._face.async_face import opening
from agentfense.types import PortInfo


class AsyncSandboxPort:
    """A port of a sandbox, and the ways to reach what listens there. `AsyncSandbox.port` makes one."""

    def __init__(self, client: AsyncSandboxClient, info: PortInfo) -> None:
        """For `AsyncSandbox.port`, which makes one."""
        self._client = client
        self._info = info

    @property
    def sandbox_id(self) -> str:
        """Whose it is."""
        return self._info.sandbox_id

    @property
    def port(self) -> int:
        """Its number."""
        return self._info.port

    @property
    def url(self) -> str:
        """For programs: with a key, or the token as the header X-Agentfense-Token."""
        return self._info.url

    @property
    def host_url(self) -> str:
        """For browsers on the server's machine: an origin of its own, with the token in it."""
        return self._info.host_url

    @property
    def token(self) -> str:
        """Opens this port to whoever has it."""
        return self._info.token

    @property
    def expires_at(self) -> datetime:
        """When the token does."""
        return self._info.expires_at

    @opening
    async def connect(self) -> AsyncPortConnection:
        """A connection, byte by byte."""
        return await self._client.connect_port(self.sandbox_id, self.port)
