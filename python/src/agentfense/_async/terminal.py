"""A terminal in a sandbox."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Type, Union

from agentfense._async.client_terminal import AsyncTerminalConnection
from agentfense._face.turn import AsyncTurn


class AsyncTerminal:
    """A terminal in a sandbox, until its program ends or it is killed. `AsyncSandbox.terminal` makes one.

    A loop over it gives what the program shows, in bytes; what is not read holds the program up. The end of its `with`
    block kills it.
    """

    def __init__(self, connection: AsyncTerminalConnection) -> None:
        """For `AsyncSandbox.terminal`, which makes one."""
        self._connection = connection
        self._turn = AsyncTurn()

    @property
    def exit_code(self) -> Optional[int]:
        """How its program ended, once the output was read to the end; 129, as after a hang-up, when it was killed."""
        return self._connection.exit_code

    def __aiter__(self) -> AsyncTerminal:
        return self

    async def __anext__(self) -> bytes:
        """What the program shows next."""
        async with self._turn:
            return await self._connection.__anext__()

    async def wait(self) -> int:
        """Reads the rest of the output, which is lost, and gives the exit code."""
        async for _ in self:
            pass
        exit_code = self.exit_code
        assert exit_code is not None, "the output ends with the exit code"
        return exit_code

    async def write(self, data: Union[str, bytes]) -> None:
        """As if it was typed; "\\r" is the return key. Nothing happens after the program has ended."""
        await self._connection.write(data)

    async def resize(self, columns: int, rows: int) -> None:
        """Tells the program of another size of its window."""
        await self._connection.resize(columns, rows)

    async def kill(self) -> None:
        """Ends what runs in it."""
        await self._connection.close()

    async def __aenter__(self) -> AsyncTerminal:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.kill()
