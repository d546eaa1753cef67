# Generated from src/agentfense/_async/port.py by scripts/generate_sync.py: change it there.
"""A port of a sandbox."""

from __future__ import annotations

from datetime import datetime

from agentfense._face.sync_face import opening
from agentfense._sync.client import SandboxClient
from agentfense._sync.client_ports import PortConnection
from agentfense.types import PortInfo


class SandboxPort:
    """A port of a sandbox, and the ways to reach what listens there. `Sandbox.port` makes one."""

    def __init__(self, client: SandboxClient, info: PortInfo) -> None:
        """For `Sandbox.port`, which makes one."""
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
    def connect(self) -> PortConnection:
        """A connection, byte by byte."""
        return self._client.connect_port(self.sandbox_id, self.port)
