# Generated from tests/async_face/test_processes.py by scripts/generate_sync.py: change it there.
"""Processes that outlive their call."""

from __future__ import annotations

from typing import Iterator, List

import pytest

from agentfense import (
    InvalidConfigurationError,
    ProcessEnd,
    ProcessError,
    ProcessEvent,
    ProcessKind,
    Sandbox,
)
from tests.server import Server


@pytest.fixture
def sandbox(server: Server) -> Iterator[Sandbox]:
    with Sandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        yield sandbox


def text_of(events: List[ProcessEvent]) -> str:
    return "".join(event.data.decode() for event in events)


def test_it_is_found_by_number_and_tag_takes_input_and_tells_its_end(sandbox: Sandbox) -> None:
    spawned = sandbox.spawn("read a; echo got $a; exit 3", tag="reader", stdin=True)
    assert (spawned.tag, spawned.info.kind, spawned.info.state) == ("reader", ProcessKind.STARTED, "running")
    found = sandbox.process("reader")
    assert (found.number, sandbox.process(spawned.number).tag) == (spawned.number, "reader")
    assert [each.number for each in sandbox.processes()] == [spawned.number]
    events = found.attach()
    found.write("this\n")
    seen = [event for event in events]
    assert text_of(seen) == "got this\n"
    assert seen[-1] == ProcessEvent("exit", end=ProcessEnd(3))
    assert spawned.wait() == ProcessEnd(3)
    assert text_of([event for event in spawned.output()]) == "got this\n"
    assert sandbox.process("reader").info.end == ProcessEnd(3)


def test_its_input_ends_and_a_signal_ends_it(sandbox: Sandbox) -> None:
    cat = sandbox.spawn(["cat"], stdin=True, env={"A": "b"}, workdir="/tmp")
    cat.write(b"last words")
    cat.end()
    assert cat.wait().exit_code == 0
    sleeper = sandbox.spawn(["sleep", "600"])
    sleeper.signal("TERM")
    assert sleeper.wait() == ProcessEnd(143, "SIGTERM")
    other = sandbox.spawn(["sleep", "600"])
    other.kill()
    assert other.wait().signal == "SIGKILL"
    with pytest.raises(ProcessError, match="has ended") as raised:
        other.write("too late")
    assert raised.value.code == "PROCESS_UNSUITABLE"


def test_it_has_a_terminal_and_a_time_limit(sandbox: Sandbox) -> None:
    shell = sandbox.spawn("sh", terminal=(91, 37))
    shell.resize(100, 40)
    shell.write("stty size; exit 5\n")
    seen = [event for event in shell.output()]
    assert "40 100" in text_of(seen)
    assert {event.kind for event in seen} == {"terminal", "exit"}
    assert shell.wait() == ProcessEnd(5)
    limited = sandbox.spawn(["sleep", "600"], timeout=0.2)
    assert limited.wait().timed_out


def test_what_is_not_there_or_wrong_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(ProcessError, match="there is no process 'web'"):
        sandbox.process("web")
    with pytest.raises(InvalidConfigurationError, match="a tag is a letter"):
        sandbox.spawn("true", tag="7")
    spawned = sandbox.spawn("sleep 600")
    with pytest.raises(InvalidConfigurationError, match="is not a signal"):
        spawned.signal("SIGNONE")
    with pytest.raises(ProcessError, match="without an input"):
        spawned.write("x")
