"""Sessions, call by call, against a real server."""

from __future__ import annotations

import pytest

from agentfense import (
    AsyncSandboxClient,
    CommandExecutionError,
    ExitEvent,
    InvalidConfigurationError,
    SessionClosedError,
    SessionNotFoundError,
    SessionStatus,
    StdoutEvent,
)
from agentfense.types import SandboxInfo


async def test_a_session_keeps_its_state(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    session = await client.create_session(sandbox.id, env={"NAME": "value"}, workdir="src", idle_timeout=60)
    assert (session.sandbox_id, session.status, session.info.close_reason) == (sandbox.id, SessionStatus.ACTIVE, "")
    assert (await client.session_exec(session.id, "pwd; echo $NAME")).stdout == "/workspace/src\nvalue\n"
    await client.session_exec(session.id, "cd /; greet() { echo hello $1; }")
    assert (await client.session_exec(session.id, "greet you; pwd")).stdout == "hello you\n/\n"
    assert await client.list_sessions(sandbox.id) == [session.info]
    assert await client.get_session(session.id) == session.info
    await client.close_session(session.id)
    with pytest.raises(SessionNotFoundError):
        await client.get_session(session.id)


async def test_a_session_can_be_spoken_to(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    async with client.session(sandbox.id, env={"NAME": "value"}) as session:
        assert (await session.exec("cd src; echo $NAME")).stdout == "value\n"
        assert (await session.exec("pwd")).stdout == "/workspace/src\n"
    assert session.closed
    assert await client.list_sessions(sandbox.id) == []


async def test_a_line_has_a_result_as_any_command(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    session = await client.create_session(sandbox.id, "/bin/sh")
    assert session.shell == "/bin/sh"
    late = await client.session_exec(session.id, "echo begun; sleep 1000", timeout=1)
    assert (late.timed_out, late.stdout, late.session_closed) == (True, "begun\n", False)
    with pytest.raises(CommandExecutionError) as raised:
        await client.session_exec(session.id, "(exit 6)", check=True)
    assert raised.value.exit_code == 6
    with pytest.raises(InvalidConfigurationError, match="timeout"):
        await client.session_exec(session.id, "true", timeout=0)
    over = await client.session_exec(session.id, "exit 0")
    assert over.session_closed
    closed = await client.get_session(session.id)
    assert (closed.status, closed.close_reason) == (SessionStatus.CLOSED, "exited")
    assert closed.closed_at is not None
    with pytest.raises(SessionClosedError) as refused:
        await client.session_exec(session.id, "true")
    assert refused.value.code == "SESSION_CLOSED"
    await client.destroy_session(session.id)


async def test_a_line_streams(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    session = await client.create_session(sandbox.id)
    events = [event async for event in client.session_exec_stream(session.id, "echo out; (exit 2)", timeout=20)]
    assert events[0] == StdoutEvent(b"out\n")
    assert isinstance(events[-1], ExitEvent)
    assert events[-1].exit_code == 2


async def test_what_a_server_refuses(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    with pytest.raises(SessionNotFoundError) as missing:
        await client.get_session("sess_" + "0" * 32)
    assert missing.value.code == "SESSION_NOT_FOUND"
    with pytest.raises(InvalidConfigurationError, match="shell"):
        await client.create_session(sandbox.id, "/bin/no-such-shell")
    with pytest.raises(InvalidConfigurationError, match="idle_timeout must be a number of seconds above 0"):
        await client.create_session(sandbox.id, idle_timeout=0)
