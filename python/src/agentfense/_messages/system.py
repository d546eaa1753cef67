"""The server itself and who may use it."""

from __future__ import annotations

from agentfense._messages.time import moment, moment_or_none
from agentfense._messages.words import ROLES, RUNTIMES
from agentfense._wire.sandbox.v1 import system_pb2
from agentfense.types import ApiKey, ServerInfo


def server_info_of(message: system_pb2.ServerInfo) -> ServerInfo:
    """What the server is, what it can do, and who it takes the caller for."""
    return ServerInfo(
        version=message.version,
        runtimes=tuple(RUNTIMES.word(runtime) for runtime in message.runtimes),
        degradations=tuple(message.degradations),
        keys_required=message.keys_required,
        owner_id=message.owner_id,
        role=ROLES.word(message.role),
    )


def api_key_of(message: system_pb2.Key) -> ApiKey:
    """A key of an answer."""
    return ApiKey(
        id=message.id,
        owner_id=message.owner_id,
        role=ROLES.word(message.role),
        name=message.name,
        created_at=moment(message.created_at),
        revoked_at=moment_or_none(message.HasField("revoked_at"), message.revoked_at),
        last_used_at=moment_or_none(message.HasField("last_used_at"), message.last_used_at),
    )
