# Generated from tests/async_face/test_client_sessions.py by scripts/generate_sync.py: change it there.
"""Sessions, call by call, against a real server."""

from __future__ import annotations

import pytest

from agentfense import (
    CommandExecutionError,
    ExitEvent,
    InvalidConfigurationError,
    SandboxClient,
    SessionClosedError,
    SessionNotFoundError,
    SessionStatus,
    StdoutEvent,
)
from agentfense.types import SandboxInfo


def test_a_session_keeps_its_state(client: SandboxClient, sandbox: SandboxInfo) -> None:
    session = client.create_session(sandbox.id, env={"NAME": "value"}, workdir="src", idle_timeout=60)
    assert (session.sandbox_id, session.status, session.info.close_reason) == (sandbox.id, SessionStatus.ACTIVE, "")
    assert client.session_exec(session.id, "pwd; echo $NAME").stdout == "/workspace/src\nvalue\n"
    client.session_exec(session.id, "cd /; greet() { echo hello $1; }")
    assert client.session_exec(session.id, "greet you; pwd").stdout == "hello you\n/\n"
    assert client.list_sessions(sandbox.id) == [session.info]
    assert client.get_session(session.id) == session.info
    client.close_session(session.id)
    with pytest.raises(SessionNotFoundError):
        client.get_session(session.id)


def test_a_session_can_be_spoken_to(client: SandboxClient, sandbox: SandboxInfo) -> None:
    with client.session(sandbox.id, env={"NAME": "value"}) as session:
        assert session.exec("cd src; echo $NAME").stdout == "value\n"
        assert session.exec("pwd").stdout == "/workspace/src\n"
    assert session.closed
    assert client.list_sessions(sandbox.id) == []


def test_a_line_has_a_result_as_any_command(client: SandboxClient, sandbox: SandboxInfo) -> None:
    session = client.create_session(sandbox.id, "/bin/sh")
    assert session.shell == "/bin/sh"
    late = client.session_exec(session.id, "echo begun; sleep 1000", timeout=1)
    assert (late.timed_out, late.stdout, late.session_closed) == (True, "begun\n", False)
    with pytest.raises(CommandExecutionError) as raised:
        client.session_exec(session.id, "(exit 6)", check=True)
    assert raised.value.exit_code == 6
    with pytest.raises(InvalidConfigurationError, match="timeout"):
        client.session_exec(session.id, "true", timeout=0)
    over = client.session_exec(session.id, "exit 0")
    assert over.session_closed
    closed = client.get_session(session.id)
    assert (closed.status, closed.close_reason) == (SessionStatus.CLOSED, "exited")
    assert closed.closed_at is not None
    with pytest.raises(SessionClosedError) as refused:
        client.session_exec(session.id, "true")
    assert refused.value.code == "SESSION_CLOSED"
    client.destroy_session(session.id)


def test_a_line_streams(client: SandboxClient, sandbox: SandboxInfo) -> None:
    session = client.create_session(sandbox.id)
    events = [event for event in client.session_exec_stream(session.id, "echo out; (exit 2)", timeout=20)]
    assert events[0] == StdoutEvent(b"out\n")
    assert isinstance(events[-1], ExitEvent)
    assert events[-1].exit_code == 2


def test_what_a_server_refuses(client: SandboxClient, sandbox: SandboxInfo) -> None:
    with pytest.raises(SessionNotFoundError) as missing:
        client.get_session("sess_" + "0" * 32)
    assert missing.value.code == "SESSION_NOT_FOUND"
    with pytest.raises(InvalidConfigurationError, match="shell"):
        client.create_session(sandbox.id, "/bin/no-such-shell")
    with pytest.raises(InvalidConfigurationError, match="idle_timeout must be a number of seconds above 0"):
        client.create_session(sandbox.id, idle_timeout=0)
