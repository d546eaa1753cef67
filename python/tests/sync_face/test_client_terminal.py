# Generated from tests/async_face/test_client_terminal.py by scripts/generate_sync.py: change it there.
"""Terminals, as the client opens them, against a real server."""

from __future__ import annotations

import pytest

from agentfense import InvalidConfigurationError, SandboxClient, SandboxNotRunningError
from agentfense._sync.client_terminal import TerminalConnection
from agentfense.types import SandboxInfo


def shown(terminal: TerminalConnection, text: bytes) -> None:
    """Returns when the program has shown it."""
    seen = b""
    while text not in seen:
        seen += terminal.__next__()


def test_a_program_sees_a_terminal(client: SandboxClient, sandbox: SandboxInfo) -> None:
    argv = ["sh", "-c", 'stty size; echo $NAME; pwd; read line; stty size; echo "got $line"; exit 7']
    with client.open_terminal(sandbox.id, 100, 30, argv=argv, env={"NAME": "value"}, workdir="src") as terminal:
        shown(terminal, b"30 100\r\nvalue\r\n/workspace/src\r\n")
        assert terminal.exit_code is None
        terminal.resize(120, 40)
        terminal.write("typed\r")
        rest = b"".join([data for data in terminal])
        assert b"40 120\r\ngot typed\r\n" in rest
        assert terminal.exit_code == 7
        terminal.write("nobody reads this\r")


def test_a_terminal_that_is_closed_ends_its_program(client: SandboxClient, sandbox: SandboxInfo) -> None:
    terminal = client.open_terminal(sandbox.id)
    terminal.write("echo $((6 * 7))\r")
    shown(terminal, b"42")
    terminal.close()
    assert terminal.exit_code == 129
    assert [data for data in terminal] == []


def test_what_cannot_be_opened(client: SandboxClient, sandbox: SandboxInfo) -> None:
    with pytest.raises(InvalidConfigurationError, match="columns must be a whole number"):
        client.open_terminal(sandbox.id, -1)
    terminal = client.open_terminal(sandbox.id, workdir="nowhere")
    with pytest.raises(InvalidConfigurationError) as raised:
        [data for data in terminal]
    assert raised.value.code == "WORKDIR_UNUSABLE"
    client.stop_sandbox(sandbox.id)
    with pytest.raises(SandboxNotRunningError):
        client.open_terminal(sandbox.id)
