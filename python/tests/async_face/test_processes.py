"""Processes that outlive their call."""

from __future__ import annotations

from typing import AsyncIterator, List

import pytest

from agentfense import (
    AsyncSandbox,
    InvalidConfigurationError,
    ProcessEnd,
    ProcessError,
    ProcessEvent,
    ProcessKind,
)
from tests.server import Server


@pytest.fixture
async def sandbox(server: Server) -> AsyncIterator[AsyncSandbox]:
    async with AsyncSandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        yield sandbox


def text_of(events: List[ProcessEvent]) -> str:
    return "".join(event.data.decode() for event in events)


async def test_it_is_found_by_number_and_tag_takes_input_and_tells_its_end(sandbox: AsyncSandbox) -> None:
    spawned = await sandbox.spawn("read a; echo got $a; exit 3", tag="reader", stdin=True)
    assert (spawned.tag, spawned.info.kind, spawned.info.state) == ("reader", ProcessKind.STARTED, "running")
    found = await sandbox.process("reader")
    assert (found.number, (await sandbox.process(spawned.number)).tag) == (spawned.number, "reader")
    assert [each.number for each in await sandbox.processes()] == [spawned.number]
    events = await found.attach()
    await found.write("this\n")
    seen = [event async for event in events]
    assert text_of(seen) == "got this\n"
    assert seen[-1] == ProcessEvent("exit", end=ProcessEnd(3))
    assert await spawned.wait() == ProcessEnd(3)
    assert text_of([event async for event in spawned.output()]) == "got this\n"
    assert (await sandbox.process("reader")).info.end == ProcessEnd(3)


async def test_its_input_ends_and_a_signal_ends_it(sandbox: AsyncSandbox) -> None:
    cat = await sandbox.spawn(["cat"], stdin=True, env={"A": "b"}, workdir="/tmp")
    await cat.write(b"last words")
    await cat.end()
    assert (await cat.wait()).exit_code == 0
    sleeper = await sandbox.spawn(["sleep", "600"])
    await sleeper.signal("TERM")
    assert await sleeper.wait() == ProcessEnd(143, "SIGTERM")
    other = await sandbox.spawn(["sleep", "600"])
    await other.kill()
    assert (await other.wait()).signal == "SIGKILL"
    with pytest.raises(ProcessError, match="has ended") as raised:
        await other.write("too late")
    assert raised.value.code == "PROCESS_UNSUITABLE"


async def test_it_has_a_terminal_and_a_time_limit(sandbox: AsyncSandbox) -> None:
    shell = await sandbox.spawn("sh", terminal=(91, 37))
    await shell.resize(100, 40)
    await shell.write("stty size; exit 5\n")
    seen = [event async for event in shell.output()]
    assert "40 100" in text_of(seen)
    assert {event.kind for event in seen} == {"terminal", "exit"}
    assert await shell.wait() == ProcessEnd(5)
    limited = await sandbox.spawn(["sleep", "600"], timeout=0.2)
    assert (await limited.wait()).timed_out


async def test_what_is_not_there_or_wrong_is_refused(sandbox: AsyncSandbox) -> None:
    with pytest.raises(ProcessError, match="there is no process 'web'"):
        await sandbox.process("web")
    with pytest.raises(InvalidConfigurationError, match="a tag is a letter"):
        await sandbox.spawn("true", tag="7")
    spawned = await sandbox.spawn("sleep 600")
    with pytest.raises(InvalidConfigurationError, match="is not a signal"):
        await spawned.signal("SIGNONE")
    with pytest.raises(ProcessError, match="without an input"):
        await spawned.write("x")
