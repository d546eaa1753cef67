# Generated from tests/async_face/test_events.py by scripts/generate_sync.py: change it there.
"""What happens to a sandbox."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Iterator, List, Optional, Sequence, Union, cast

import pytest

from agentfense import AuditEvent, ConnectionError, Sandbox, SandboxClient, SandboxNotFoundError
from agentfense._sandbox import absence
from agentfense._sync.events import follow_events
from tests.concurrency.sync_face import at_once
from tests.server import Server


@pytest.fixture
def sandbox(server: Server) -> Iterator[Sandbox]:
    with Sandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        yield sandbox


def test_what_happened_so_far(sandbox: Sandbox) -> None:
    sandbox.run("true")
    past = [event for event in sandbox.events(follow=False)]
    assert (past[0].type, past[0].sandbox_id) == ("sandbox_created", sandbox.id)
    assert [event.sequence for event in past] == sorted({event.sequence for event in past})
    later = [event for event in sandbox.events(follow=False, after_sequence=past[0].sequence)]
    assert later[: len(past) - 1] == past[1:]
    commands = [event.type for event in sandbox.events(follow=False, types=["command_executed"])]
    assert commands == ["command_executed"]


def test_what_happened_then_what_happens_without_gaps_or_repeats(sandbox: Sandbox) -> None:
    sandbox.run("echo before")
    seen: List[int] = []
    for event in sandbox.events(types=["command_executed"]):
        seen.append(event.sequence)
        if len(seen) == 3:
            break
        sandbox.run("echo during")
    assert seen == sorted(set(seen))
    past = [event.sequence for event in sandbox.events(follow=False, types=["command_executed"])]
    assert past[:3] == seen


def test_they_end_with_the_sandbox(sandbox: Sandbox) -> None:
    seen: List[str] = []
    for event in sandbox.events():
        seen.append(event.type)
        if event.type == "sandbox_created":
            sandbox.destroy()
    assert seen[-1] == "sandbox_destroyed"


def test_they_end_quietly_when_the_object_is_closed(server: Server, sandbox: Sandbox) -> None:
    other = Sandbox.connect(sandbox.id, server.endpoint)

    def follow() -> None:
        for _ in other.events():
            at_once([other.close])

    follow()


# A connection that is lost, as often as it takes.


def lost() -> ConnectionError:
    return ConnectionError("lost", code="CONNECTION_FAILED", retryable=True)


def event(sequence: int, kind: str = "command_executed") -> AuditEvent:
    return AuditEvent(sequence, datetime.now(timezone.utc), kind, "info", "", "", "sb_1", "", "")


class Watch:
    """Gives these events, and then fails, or ends when there is no failure."""

    def __init__(self, events: Sequence[Union[AuditEvent, BaseException]]) -> None:
        self._events = iter(events)

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> AuditEvent:
        for one in self._events:
            if isinstance(one, BaseException):
                raise one
            return one
        raise StopIteration

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None: ...


class Losing:
    """A client whose watches each have their own fate; the last one's is that of all after it."""

    def __init__(self, *watches: Sequence[Union[AuditEvent, BaseException]]) -> None:
        self._watches = watches
        self.asked: List[Optional[int]] = []

    def watch_events(self, *, after_sequence: Optional[int], **_: Any) -> Watch:
        self.asked.append(after_sequence)
        return Watch(self._watches[min(len(self.asked), len(self._watches)) - 1])


def followed(losing: Losing) -> List[int]:
    client = cast(SandboxClient, losing)
    return [one.sequence for one in follow_events(client, "sb_1", types=None, after_sequence=0)]


def test_after_a_lost_connection_they_go_on_where_they_were() -> None:
    losing = Losing(
        [event(3), event(5), lost()], [lost()], [event(5), event(8)], [event(9, "sandbox_destroyed"), event(10)]
    )
    assert followed(losing) == [3, 5, 8, 9]
    assert losing.asked == [0, 5, 5, 8]


def test_an_error_that_is_no_lost_connection_is_told_at_once() -> None:
    losing = Losing([SandboxNotFoundError("there is no such sandbox", code="SANDBOX_NOT_FOUND")])
    with pytest.raises(SandboxNotFoundError):
        followed(losing)
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
