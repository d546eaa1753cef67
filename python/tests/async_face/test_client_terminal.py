"""Terminals, as the client opens them, against a real server."""

from __future__ import annotations

import pytest

from agentfense import AsyncSandboxClient, InvalidConfigurationError, SandboxNotRunningError
from agentfense._async.client_terminal import AsyncTerminalConnection
from agentfense.types import SandboxInfo


async def shown(terminal: AsyncTerminalConnection, text: bytes) -> None:
    """Returns when the program has shown it."""
    seen = b""
    while text not in seen:
        seen += await terminal.__anext__()


async def test_a_program_sees_a_terminal(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    argv = ["sh", "-c", 'stty size; echo $NAME; pwd; read line; stty size; echo "got $line"; exit 7']
    async with await client.open_terminal(
        sandbox.id, 100, 30, argv=argv, env={"NAME": "value"}, workdir="src"
    ) as terminal:
        await shown(terminal, b"30 100\r\nvalue\r\n/workspace/src\r\n")
        assert terminal.exit_code is None
        await terminal.resize(120, 40)
        await terminal.write("typed\r")
        rest = b"".join([data async for data in terminal])
        assert b"40 120\r\ngot typed\r\n" in rest
        assert terminal.exit_code == 7
        await terminal.write("nobody reads this\r")


async def test_a_terminal_that_is_closed_ends_its_program(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    terminal = await client.open_terminal(sandbox.id)
    await terminal.write("echo $((6 * 7))\r")
    await shown(terminal, b"42")
    await terminal.close()
    assert terminal.exit_code == 129
    assert [data async for data in terminal] == []


async def test_what_cannot_be_opened(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    with pytest.raises(InvalidConfigurationError, match="columns must be a whole number"):
        await client.open_terminal(sandbox.id, -1)
    terminal = await client.open_terminal(sandbox.id, workdir="nowhere")
    with pytest.raises(InvalidConfigurationError) as raised:
        [data async for data in terminal]
    assert raised.value.code == "WORKDIR_UNUSABLE"
    await client.stop_sandbox(sandbox.id)
    with pytest.raises(SandboxNotRunningError):
        await client.open_terminal(sandbox.id)
