# Generated from src/agentfense/_async/client_system.py by scripts/generate_sync.py: change it there.
"""The server itself and who may use it."""

from __future__ import annotations

from typing import List, Optional, Union

from agentfense._connection.method import SystemService
from agentfense._messages.system import api_key_of, server_info_of
from agentfense._messages.words import ROLES
from agentfense._sync.client_base import ClientPart
from agentfense._wire.sandbox.v1 import system_pb2
from agentfense.types import ApiKey, CreatedKey, Role, ServerInfo


class SystemMethods(ClientPart):
    """The server, and its API keys, which are for administrators."""

    def get_server_info(self) -> ServerInfo:
        """What the server is, what it can do, and who it takes the caller for."""
        request = system_pb2.GetServerInfoRequest()
        return server_info_of(self._calls.unary(SystemService.get_server_info, request))

    def create_key(
        self, owner_id: Optional[str] = None, *, role: Union[Role, str, None] = None, name: str = ""
    ) -> CreatedKey:
        """Makes an API key. The owner may be absent for an administrator only; the role is user unless given."""
        request = system_pb2.CreateKeyRequest(owner_id=owner_id or "", role=ROLES.number(role), name=name)
        answer = self._calls.unary(SystemService.create_key, request)
        return CreatedKey(key=api_key_of(answer.key), secret=answer.secret)

    def list_keys(self) -> List[ApiKey]:
        """All keys, without their secrets."""
        answer = self._calls.unary(SystemService.list_keys, system_pb2.ListKeysRequest())
        return [api_key_of(key) for key in answer.keys]

    def revoke_key(self, key_id: str) -> None:
        """Takes a key out of force, at once."""
        self._calls.unary(SystemService.revoke_key, system_pb2.RevokeKeyRequest(key_id=key_id))
