"""What happens to a sandbox."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, AsyncIterator, List, Optional, Sequence, Union, cast

import pytest

from agentfense import AsyncSandbox, AsyncSandboxClient, AuditEvent, ConnectionError, SandboxNotFoundError
from agentfense._async.events import follow_events
from agentfense._sandbox import absence
from tests.concurrency.async_face import at_once
from tests.server import Server


@pytest.fixture
async def sandbox(server: Server) -> AsyncIterator[AsyncSandbox]:
    async with AsyncSandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        yield sandbox


async def test_what_happened_so_far(sandbox: AsyncSandbox) -> None:
    await sandbox.run("true")
    past = [event async for event in sandbox.events(follow=False)]
    assert (past[0].type, past[0].sandbox_id) == ("sandbox_created", sandbox.id)
    assert [event.sequence for event in past] == sorted({event.sequence for event in past})
    later = [event async for event in sandbox.events(follow=False, after_sequence=past[0].sequence)]
    assert later[: len(past) - 1] == past[1:]
    commands = [event.type async for event in sandbox.events(follow=False, types=["command_executed"])]
    assert commands == ["command_executed"]


async def test_what_happened_then_what_happens_without_gaps_or_repeats(sandbox: AsyncSandbox) -> None:
    await sandbox.run("echo before")
    seen: List[int] = []
    async for event in sandbox.events(types=["command_executed"]):
        seen.append(event.sequence)
        if len(seen) == 3:
            break
        await sandbox.run("echo during")
    assert seen == sorted(set(seen))
    past = [event.sequence async for event in sandbox.events(follow=False, types=["command_executed"])]
    assert past[:3] == seen


async def test_they_end_with_the_sandbox(sandbox: AsyncSandbox) -> None:
    seen: List[str] = []
    async for event in sandbox.events():
        seen.append(event.type)
        if event.type == "sandbox_created":
            await sandbox.destroy()
    assert seen[-1] == "sandbox_destroyed"


async def test_they_end_quietly_when_the_object_is_closed(server: Server, sandbox: AsyncSandbox) -> None:
    other = await AsyncSandbox.connect(sandbox.id, server.endpoint)

    async def follow() -> None:
        async for _ in other.events():
            await at_once([other.close])

    await follow()


# A connection that is lost, as often as it takes.


def lost() -> ConnectionError:
    return ConnectionError("lost", code="CONNECTION_FAILED", retryable=True)


def event(sequence: int, kind: str = "command_executed") -> AuditEvent:
    return AuditEvent(sequence, datetime.now(timezone.utc), kind, "info", "", "", "sb_1", "", "")


class AsyncWatch:
    """Gives these events, and then fails, or ends when there is no failure."""

    def __init__(self, events: Sequence[Union[AuditEvent, BaseException]]) -> None:
        self._events = iter(events)

    def __aiter__(self) -> AsyncWatch:
        return self

    async def __anext__(self) -> AuditEvent:
        for one in self._events:
            if isinstance(one, BaseException):
                raise one
            return one
        raise StopAsyncIteration

    async def __aenter__(self) -> AsyncWatch:
        return self

    async def __aexit__(self, *_: object) -> None: ...


class Losing:
    """A client whose watches each have their own fate; the last one's is that of all after it."""

    def __init__(self, *watches: Sequence[Union[AuditEvent, BaseException]]) -> None:
        self._watches = watches
        self.asked: List[Optional[int]] = []

    def watch_events(self, *, after_sequence: Optional[int], **_: Any) -> AsyncWatch:
        self.asked.append(after_sequence)
        return AsyncWatch(self._watches[min(len(self.asked), len(self._watches)) - 1])


async def followed(losing: Losing) -> List[int]:
    client = cast(AsyncSandboxClient, losing)
    return [one.sequence async for one in follow_events(client, "sb_1", types=None, after_sequence=0)]


async def test_after_a_lost_connection_they_go_on_where_they_were() -> None:
    losing = Losing(
        [event(3), event(5), lost()], [lost()], [event(5), event(8)], [event(9, "sandbox_destroyed"), event(10)]
    )
    assert await followed(losing) == [3, 5, 8, 9]
    assert losing.asked == [0, 5, 5, 8]


async def test_an_error_that_is_no_lost_connection_is_told_at_once() -> None:
    losing = Losing([SandboxNotFoundError("there is no such sandbox", code="SANDBOX_NOT_FOUND")])
    with pytest.raises(SandboxNotFoundError):
        await followed(losing)
    assert losing.asked == [0]


def test_a_server_that_stays_away_for_30_seconds_is_given_up_and_not_before() -> None:
    pauses: List[float] = []
    waiting = absence.Absence(lambda: sum(pauses))

    def wait_for_good() -> None:
        while True:
            waiting.attempt()
            pauses.append(waiting.pause_after(lost()))

    with pytest.raises(ConnectionError):
        wait_for_good()
    assert 30 < sum(pauses) < 34
    # From 100 ms up to 2 s apart.
    assert 15 < len(pauses) < 45
