"""The audit log, and changes of watched files."""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import MessageToDict

from agentfense._messages.time import moment
from agentfense._wire.sandbox.v1 import event_pb2, sandbox_pb2
from agentfense.exceptions import SandboxError
from agentfense.types import AuditEvent, FileChange

_CAUSES = {
    sandbox_pb2.FILE_EVENT_CAUSE_MADE: "made",
    sandbox_pb2.FILE_EVENT_CAUSE_REMOVED: "removed",
    sandbox_pb2.FILE_EVENT_CAUSE_MOVED_AWAY: "moved-away",
    sandbox_pb2.FILE_EVENT_CAUSE_MOVED_HERE: "moved-here",
    sandbox_pb2.FILE_EVENT_CAUSE_WRITTEN: "written",
    sandbox_pb2.FILE_EVENT_CAUSE_ATTRIBUTES: "attributes",
}

_FILE_EVENTS = {
    sandbox_pb2.FILE_EVENT_KIND_RENAME: "rename",
    sandbox_pb2.FILE_EVENT_KIND_CHANGE: "change",
}


def audit_event_of(message: event_pb2.Event) -> AuditEvent:
    """An entry of the audit log."""
    return AuditEvent(
        sequence=message.sequence,
        time=moment(message.time),
        type=message.type,
        level=message.level or "info",
        owner_id=message.owner_id,
        key_id=message.key_id,
        sandbox_id=message.sandbox_id,
        codebase_id=message.codebase_id,
        session_id=message.session_id,
        data={name: _plain(value) for name, value in MessageToDict(message.data).items()},
        hash=message.hash,
    )


def _plain(value: Any) -> Any:
    """Numbers of a Struct are all floats; what is whole was written as such."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def file_change_of(message: sandbox_pb2.FileEvent) -> FileChange:
    """A change of a watched path."""
    kind = _FILE_EVENTS.get(message.kind)
    if kind is None:
        text = f"the server sent a change of a file that this client does not know: {message.kind}"
        raise SandboxError(text, hint="update the client")
    return FileChange(event_type=kind, filename=message.path, cause=_CAUSES.get(message.cause))
