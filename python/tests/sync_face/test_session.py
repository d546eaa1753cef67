# Generated from tests/async_face/test_session.py by scripts/generate_sync.py: change it there.
"""A shell that keeps its state."""

from __future__ import annotations

from functools import partial
from typing import Any, Iterator, List

import pytest

from agentfense import (
    CommandExecutionError,
    ExitEvent,
    InvalidConfigurationError,
    Sandbox,
    SessionClosedError,
    SessionInfo,
    SessionStatus,
)
from agentfense._face.sync_face import sleep
from tests.concurrency.sync_face import interrupted
from tests.server import Server
from tests.support.patience import Patience


@pytest.fixture
def sandbox(server: Server) -> Iterator[Sandbox]:
    with Sandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        yield sandbox


def test_it_keeps_directory_variables_and_functions(sandbox: Sandbox) -> None:
    with sandbox.session(env={"GREETING": "hello"}) as session:
        assert (session.sandbox_id, session.status, session.closed) == (sandbox.id, SessionStatus.ACTIVE, False)
        assert session.id != ""
        assert session.shell != ""
        session.exec("mkdir src; cd src; SHELF=oak; greet() { echo $GREETING $1; }")
        result = session.exec("pwd; echo $SHELF; greet you")
        assert result.stdout == "/workspace/src\noak\nhello you\n"
        with pytest.raises(CommandExecutionError) as raised:
            session.exec("(exit 5)", check=True)
        assert raised.value.exit_code == 5
    assert (session.status, session.closed) == (SessionStatus.CLOSED, True)
    with pytest.raises(SessionClosedError, match=r"open another one with sandbox\.session"):
        session.exec("pwd")


def test_it_can_also_be_opened_first_and_begin_elsewhere(sandbox: Sandbox) -> None:
    session = sandbox.session("/bin/sh", workdir="/tmp", idle_timeout=60)
    assert session.exec("pwd").stdout == "/tmp\n"
    session.close()
    session.close()
    with pytest.raises(InvalidConfigurationError):
        sandbox.session(idle_timeout=0)


def test_a_line_that_runs_out_of_time_is_interrupted_and_the_session_stays(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        session.exec("SHELF=oak")
        result = session.exec("echo begun; sleep 60", timeout=1)
        assert (result.timed_out, result.stdout, result.session_closed) == (True, "begun\n", False)
        assert session.exec("echo $SHELF").stdout == "oak\n"


def test_output_is_heard_and_streamed(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        heard: List[str] = []
        result = session.exec("echo out; echo err >&2", on_stdout=heard.append, on_stderr=heard.append)
        assert (result.stdout, result.stderr, sorted(heard)) == ("out\n", "err\n", ["err\n", "out\n"])
        ends = [event.exit_code for event in session.stream("echo x; exit 7") if isinstance(event, ExitEvent)]
        assert ends == [7]
        with pytest.raises(SessionClosedError):
            session.exec("pwd")


def test_a_line_that_ends_the_shell_is_known_to_have_done_so(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        assert session.exec("exit").session_closed
        assert session.closed


def test_a_streamed_line_can_be_killed(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        execution = session.stream("echo up; sleep 600")
        execution.__next__()
        execution.kill()
        result = execution.wait()
        assert (result.exit_code, result.signal, result.command) == (137, "SIGKILL", "echo up; sleep 600")


def test_leaving_its_block_by_an_exception_closes_it_and_the_exception_is_what_is_heard(
    sandbox: Sandbox,
) -> None:
    with pytest.raises(ZeroDivisionError):
        with sandbox.session():
            raise ZeroDivisionError
    assert sandbox.client.list_sessions(sandbox.id) == []


def test_whoever_gives_up_while_it_is_opened_leaves_none_behind(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = sandbox.client._create_session
    seen: List[str] = []

    def slowly(*args: Any, **words: Any) -> SessionInfo:
        made = create(*args, **words)
        seen.append(made.id)
        sleep(0.5)
        return made

    monkeypatch.setattr(sandbox.client, "_create_session", slowly)
    interrupted(sandbox.session, after=partial(Patience.until, lambda: seen))
    assert sandbox.client.list_sessions(sandbox.id) == []


def test_one_whose_sandbox_is_gone_closes_without_complaint(sandbox: Sandbox) -> None:
    with sandbox.session():
        sandbox.destroy()
