"""A shell that keeps its state."""

from __future__ import annotations

from functools import partial
from typing import Any, AsyncIterator, List

import pytest

from agentfense import (
    AsyncSandbox,
    CommandExecutionError,
    ExitEvent,
    InvalidConfigurationError,
    SessionClosedError,
    SessionInfo,
    SessionStatus,
)
from agentfense._face.async_face import sleep
from tests.concurrency.async_face import interrupted
from tests.server import Server
from tests.support.patience import AsyncPatience


@pytest.fixture
async def sandbox(server: Server) -> AsyncIterator[AsyncSandbox]:
    async with AsyncSandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        yield sandbox


async def test_it_keeps_directory_variables_and_functions(sandbox: AsyncSandbox) -> None:
    async with sandbox.session(env={"GREETING": "hello"}) as session:
        assert (session.sandbox_id, session.status, session.closed) == (sandbox.id, SessionStatus.ACTIVE, False)
        assert session.id != ""
        assert session.shell != ""
        await session.exec("mkdir src; cd src; SHELF=oak; greet() { echo $GREETING $1; }")
        result = await session.exec("pwd; echo $SHELF; greet you")
        assert result.stdout == "/workspace/src\noak\nhello you\n"
        with pytest.raises(CommandExecutionError) as raised:
            await session.exec("(exit 5)", check=True)
        assert raised.value.exit_code == 5
    assert (session.status, session.closed) == (SessionStatus.CLOSED, True)
    with pytest.raises(SessionClosedError, match=r"open another one with sandbox\.session"):
        await session.exec("pwd")


async def test_it_can_also_be_opened_first_and_begin_elsewhere(sandbox: AsyncSandbox) -> None:
    session = await sandbox.session("/bin/sh", workdir="/tmp", idle_timeout=60)
    assert (await session.exec("pwd")).stdout == "/tmp\n"
    await session.close()
    await session.close()
    with pytest.raises(InvalidConfigurationError):
        await sandbox.session(idle_timeout=0)


async def test_a_line_that_runs_out_of_time_is_interrupted_and_the_session_stays(sandbox: AsyncSandbox) -> None:
    async with sandbox.session() as session:
        await session.exec("SHELF=oak")
        result = await session.exec("echo begun; sleep 60", timeout=1)
        assert (result.timed_out, result.stdout, result.session_closed) == (True, "begun\n", False)
        assert (await session.exec("echo $SHELF")).stdout == "oak\n"


async def test_output_is_heard_and_streamed(sandbox: AsyncSandbox) -> None:
    async with sandbox.session() as session:
        heard: List[str] = []
        result = await session.exec("echo out; echo err >&2", on_stdout=heard.append, on_stderr=heard.append)
        assert (result.stdout, result.stderr, sorted(heard)) == ("out\n", "err\n", ["err\n", "out\n"])
        ends = [event.exit_code async for event in session.stream("echo x; exit 7") if isinstance(event, ExitEvent)]
        assert ends == [7]
        with pytest.raises(SessionClosedError):
            await session.exec("pwd")


async def test_a_line_that_ends_the_shell_is_known_to_have_done_so(sandbox: AsyncSandbox) -> None:
    async with sandbox.session() as session:
        assert (await session.exec("exit")).session_closed
        assert session.closed


async def test_a_streamed_line_can_be_killed(sandbox: AsyncSandbox) -> None:
    async with sandbox.session() as session:
        execution = session.stream("echo up; sleep 600")
        await execution.__anext__()
        await execution.kill()
        result = await execution.wait()
        assert (result.exit_code, result.signal, result.command) == (137, "SIGKILL", "echo up; sleep 600")


async def test_leaving_its_block_by_an_exception_closes_it_and_the_exception_is_what_is_heard(
    sandbox: AsyncSandbox,
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with sandbox.session():
            raise ZeroDivisionError
    assert await sandbox.client.list_sessions(sandbox.id) == []


async def test_whoever_gives_up_while_it_is_opened_leaves_none_behind(
    sandbox: AsyncSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = sandbox.client._create_session
    seen: List[str] = []

    async def slowly(*args: Any, **words: Any) -> SessionInfo:
        made = await create(*args, **words)
        seen.append(made.id)
        await sleep(0.5)
        return made

    monkeypatch.setattr(sandbox.client, "_create_session", slowly)
    await interrupted(sandbox.session, after=partial(AsyncPatience.until, lambda: seen))
    assert await sandbox.client.list_sessions(sandbox.id) == []


async def test_one_whose_sandbox_is_gone_closes_without_complaint(sandbox: AsyncSandbox) -> None:
    async with sandbox.session():
        await sandbox.destroy()
