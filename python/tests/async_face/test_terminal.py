"""A terminal in a sandbox."""

from __future__ import annotations

from typing import AsyncIterator

import pytest

from agentfense import AsyncSandbox, AsyncTerminal, SandboxNotRunningError
from tests.server import Server


@pytest.fixture
async def sandbox(server: Server) -> AsyncIterator[AsyncSandbox]:
    async with AsyncSandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        yield sandbox


async def shown_until(terminal: AsyncTerminal, wanted: bytes) -> bytes:
    shown = b""
    async for piece in terminal:
        shown += piece
        if wanted in shown:
            break
    assert wanted in shown
    return shown


async def test_it_shows_what_is_typed_is_resized_and_tells_how_its_program_ended(sandbox: AsyncSandbox) -> None:
    async with sandbox.terminal(90, 30, argv=["sh"], env={"SHELF": "oak"}, workdir="/tmp") as terminal:
        await terminal.write("echo $SHELF in $(pwd); stty size | tr ' ' x\r")
        assert b"oak in /tmp" in await shown_until(terminal, b"30x90")
        await terminal.resize(100, 40)
        await terminal.write(b"stty size | tr ' ' x\r")
        await shown_until(terminal, b"40x100")
        assert terminal.exit_code is None
        await terminal.write("exit 9\r")
        assert await terminal.wait() == 9
        assert terminal.exit_code == 9
        await terminal.write("nobody hears this\r")


async def test_it_is_80_by_24_unless_said_otherwise(sandbox: AsyncSandbox) -> None:
    terminal = await sandbox.terminal(argv=["sh", "-c", "stty size | tr ' ' x"])
    await shown_until(terminal, b"24x80")
    assert await terminal.wait() == 0


async def test_killing_it_is_a_hang_up(sandbox: AsyncSandbox) -> None:
    async with sandbox.terminal(argv=["sh"]) as terminal:
        await terminal.write("echo up\r")
        await shown_until(terminal, b"up")
    assert (terminal.exit_code, await terminal.wait()) == (129, 129)
    assert [piece async for piece in terminal] == []


async def test_a_sandbox_that_does_not_run_has_none(sandbox: AsyncSandbox) -> None:
    await sandbox.stop()
    with pytest.raises(SandboxNotRunningError):
        await sandbox.terminal()
