# Generated from tests/async_face/test_terminal.py by scripts/generate_sync.py: change it there.
"""A terminal in a sandbox."""

from __future__ import annotations

from typing import Iterator

import pytest

from agentfense import Sandbox, SandboxNotRunningError, Terminal
from tests.server import Server


@pytest.fixture
def sandbox(server: Server) -> Iterator[Sandbox]:
    with Sandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        yield sandbox


def shown_until(terminal: Terminal, wanted: bytes) -> bytes:
    shown = b""
    for piece in terminal:
        shown += piece
        if wanted in shown:
            break
    assert wanted in shown
    return shown


def test_it_shows_what_is_typed_is_resized_and_tells_how_its_program_ended(sandbox: Sandbox) -> None:
    with sandbox.terminal(90, 30, argv=["sh"], env={"SHELF": "oak"}, workdir="/tmp") as terminal:
        terminal.write("echo $SHELF in $(pwd); stty size | tr ' ' x\r")
        assert b"oak in /tmp" in shown_until(terminal, b"30x90")
        terminal.resize(100, 40)
        terminal.write(b"stty size | tr ' ' x\r")
        shown_until(terminal, b"40x100")
        assert terminal.exit_code is None
        terminal.write("exit 9\r")
        assert terminal.wait() == 9
        assert terminal.exit_code == 9
        terminal.write("nobody hears this\r")


def test_it_is_80_by_24_unless_said_otherwise(sandbox: Sandbox) -> None:
    terminal = sandbox.terminal(argv=["sh", "-c", "stty size | tr ' ' x"])
    shown_until(terminal, b"24x80")
    assert terminal.wait() == 0


def test_killing_it_is_a_hang_up(sandbox: Sandbox) -> None:
    with sandbox.terminal(argv=["sh"]) as terminal:
        terminal.write("echo up\r")
        shown_until(terminal, b"up")
    assert (terminal.exit_code, terminal.wait()) == (129, 129)
    assert [piece for piece in terminal] == []


def test_a_sandbox_that_does_not_run_has_none(sandbox: Sandbox) -> None:
    sandbox.stop()
    with pytest.raises(SandboxNotRunningError):
        sandbox.terminal()
