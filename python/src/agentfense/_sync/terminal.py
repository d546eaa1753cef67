# Generated from src/agentfense/_async/terminal.py by scripts/generate_sync.py: change it there.
"""A terminal in a sandbox."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Type, Union

from agentfense._face.turn import Turn
from agentfense._sync.client_terminal import TerminalConnection


class Terminal:
    """A terminal in a sandbox, until its program ends or it is killed. `Sandbox.terminal` makes one.

    A loop over it gives what the program shows, in bytes; what is not read holds the program up. The end of its `with`
    block kills it.
    """

    def __init__(self, connection: TerminalConnection) -> None:
        """For `Sandbox.terminal`, which makes one."""
        self._connection = connection
        self._turn = Turn()

    @property
    def exit_code(self) -> Optional[int]:
        """How its program ended, once the output was read to the end; 129, as after a hang-up, when it was killed."""
        return self._connection.exit_code

    def __iter__(self) -> Terminal:
        return self

    def __next__(self) -> bytes:
        """What the program shows next."""
        with self._turn:
            return self._connection.__next__()

    def wait(self) -> int:
        """Reads the rest of the output, which is lost, and gives the exit code."""
        for _ in self:
            pass
        exit_code = self.exit_code
        assert exit_code is not None, "the output ends with the exit code"
        return exit_code

    def write(self, data: Union[str, bytes]) -> None:
        """As if it was typed; "\\r" is the return key. Nothing happens after the program has ended."""
        self._connection.write(data)

    def resize(self, columns: int, rows: int) -> None:
        """Tells the program of another size of its window."""
        self._connection.resize(columns, rows)

    def kill(self) -> None:
        """Ends what runs in it."""
        self._connection.close()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.kill()
