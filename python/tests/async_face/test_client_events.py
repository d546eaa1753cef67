"""The audit log, call by call, against a real server."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agentfense import AsyncSandboxClient, InvalidConfigurationError
from agentfense.types import SandboxInfo


async def test_what_happened_is_listed(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    await client.exec(sandbox.id, "exit 3")
    events = await client.list_events(sandbox_id=sandbox.id)
    assert [event.type for event in events] == ["sandbox_created", "sandbox_started", "command_executed"]
    executed = events[-1]
    assert (executed.level, executed.sandbox_id, executed.codebase_id) == ("info", sandbox.id, sandbox.codebase_id)
    assert executed.data["exit_code"] == 3
    assert executed.time.tzinfo is not None
    assert await client.list_events(sandbox_id=sandbox.id, limit=2) == events[:2]
    assert await client.list_events(sandbox_id=sandbox.id, types=["sandbox_started"]) == [events[1]]
    assert await client.list_events(sandbox_id=sandbox.id, after=executed.time, types=["command_executed"]) == [
        executed
    ]
    assert await client.list_events(sandbox_id=sandbox.id, before=events[0].time - timedelta(seconds=1)) == []
    with pytest.raises(InvalidConfigurationError, match="page_size"):
        await client.list_events(limit=0)


async def test_what_happens_is_watched(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    created, *_ = await client.list_events(sandbox_id=sandbox.id)
    async with client.watch_events(sandbox_id=sandbox.id, after_sequence=created.sequence) as watch:
        assert (await watch.__anext__()).type == "sandbox_started"
        await client.exec(sandbox.id, "true")
        assert (await watch.__anext__()).type == "command_executed"
    assert [event async for event in watch] == []
