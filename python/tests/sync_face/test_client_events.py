# Generated from tests/async_face/test_client_events.py by scripts/generate_sync.py: change it there.
"""The audit log, call by call, against a real server."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agentfense import InvalidConfigurationError, SandboxClient
from agentfense.types import SandboxInfo


def test_what_happened_is_listed(client: SandboxClient, sandbox: SandboxInfo) -> None:
    client.exec(sandbox.id, "exit 3")
    events = client.list_events(sandbox_id=sandbox.id)
    assert [event.type for event in events] == ["sandbox_created", "sandbox_started", "command_executed"]
    executed = events[-1]
    assert (executed.level, executed.sandbox_id, executed.codebase_id) == ("info", sandbox.id, sandbox.codebase_id)
    assert executed.data["exit_code"] == 3
    assert executed.time.tzinfo is not None
    assert client.list_events(sandbox_id=sandbox.id, limit=2) == events[:2]
    assert client.list_events(sandbox_id=sandbox.id, types=["sandbox_started"]) == [events[1]]
    assert client.list_events(sandbox_id=sandbox.id, after=executed.time, types=["command_executed"]) == [executed]
    assert client.list_events(sandbox_id=sandbox.id, before=events[0].time - timedelta(seconds=1)) == []
    with pytest.raises(InvalidConfigurationError, match="page_size"):
        client.list_events(limit=0)


def test_what_happens_is_watched(client: SandboxClient, sandbox: SandboxInfo) -> None:
    created, *_ = client.list_events(sandbox_id=sandbox.id)
    with client.watch_events(sandbox_id=sandbox.id, after_sequence=created.sequence) as watch:
        assert watch.__next__().type == "sandbox_started"
        client.exec(sandbox.id, "true")
        assert watch.__next__().type == "command_executed"
    assert [event for event in watch] == []
