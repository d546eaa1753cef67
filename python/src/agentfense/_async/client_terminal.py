"""Terminals, as the client opens them."""

from __future__ import annotations

from types import TracebackType
from typing import Mapping, Optional, Sequence, Type, Union

from agentfense._async.client_base import AsyncClientPart
from agentfense._connection.method import SandboxService
from agentfense._face.async_face import Duplex
from agentfense._messages.content import pieces
from agentfense._messages.numbers import count, strings
from agentfense._messages.sandbox import sandbox_of
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import ConnectionError, SandboxNotRunningError
from agentfense.types import SandboxStatus

# 128 + SIGHUP.
_HUNG_UP = 129
_LARGEST_SIDE = 2**16 - 1


class AsyncTerminalMethods(AsyncClientPart):
    """Interactive programs."""

    async def open_terminal(
        self,
        sandbox_id: str,
        columns: int = 80,
        rows: int = 24,
        *,
        argv: Optional[Sequence[str]] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
    ) -> AsyncTerminalConnection:
        """A terminal in a running sandbox.

        Args:
            sandbox_id: Where.
            columns: Of its window.
            rows: Of its window.
            argv: The program and its arguments; default: the sandbox's first shell.
            env: Variables, besides those of the sandbox.
            workdir: Absolute, or relative to the workspace; default /workspace.
        """
        # A program may wait for input and print nothing, so that a terminal that is open looks like one that is being
        # opened. What mostly prevents one is asked for before.
        await self._require_running(sandbox_id)
        first = sandbox_pb2.TerminalInput(
            open=sandbox_pb2.TerminalInput.Open(
                sandbox_id=sandbox_id,
                argv=argv or (),
                env=strings(env, "env"),
                workdir=workdir or "",
                size=_size_message(columns, rows),
            )
        )
        return AsyncTerminalConnection(self._calls.duplex(SandboxService.open_terminal, first))

    async def _require_running(self, sandbox_id: str) -> None:
        request = sandbox_pb2.GetSandboxRequest(sandbox_id=sandbox_id)
        info = sandbox_of(await self._calls.unary(SandboxService.get_sandbox, request))
        status, is_paused = info.status, info.status is SandboxStatus.PAUSED
        if status is not SandboxStatus.RUNNING and not (is_paused and info.status_reason == "idle"):
            raise SandboxNotRunningError(
                f"sandbox is not running: it is {status}",
                code="SANDBOX_PAUSED" if is_paused else "SANDBOX_NOT_RUNNING",
                details={"sandbox_id": sandbox_id, "status": str(status)},
            )


def _size_message(columns: int, rows: int) -> sandbox_pb2.TerminalSize:
    return sandbox_pb2.TerminalSize(
        columns=count(columns, "columns", _LARGEST_SIDE), rows=count(rows, "rows", _LARGEST_SIDE)
    )


class AsyncTerminalConnection:
    """A terminal that is open, until its program ends or `close` is called.

    A loop over it gives what the program shows. What is not read holds the program up.
    """

    def __init__(self, call: Duplex[sandbox_pb2.TerminalInput, sandbox_pb2.TerminalOutput]) -> None:
        self._call = call
        self._exit_code: Optional[int] = None

    @property
    def exit_code(self) -> Optional[int]:
        """How the program ended, once its output was read to the end; 129 when it was closed from here."""
        return self._exit_code

    def __aiter__(self) -> AsyncTerminalConnection:
        return self

    async def __anext__(self) -> bytes:
        while self._exit_code is None:
            output = await self._receive()
            if output.HasField("exit_code"):
                await self._ended(output.exit_code)
            if output.data:
                return output.data
        raise StopAsyncIteration

    async def write(self, data: Union[str, bytes]) -> None:
        """Types. Returns when it is on its way. Nothing happens after the program has ended."""
        for piece in pieces(data):
            await self._call.send(sandbox_pb2.TerminalInput(data=piece))

    async def resize(self, columns: int, rows: int) -> None:
        """Tells the program of another size of its window."""
        await self._call.send(sandbox_pb2.TerminalInput(resize=_size_message(columns, rows)))

    async def close(self) -> None:
        """Ends what runs in it."""
        await self._ended(_HUNG_UP)

    async def __aenter__(self) -> AsyncTerminalConnection:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    async def _receive(self) -> sandbox_pb2.TerminalOutput:
        try:
            return await self._call.__anext__()
        except StopAsyncIteration:
            if self._exit_code is not None:
                raise
            message = "the server did not say how the terminal ended"
            raise ConnectionError(message, code="CONNECTION_FAILED") from None

    async def _ended(self, exit_code: int) -> None:
        if self._exit_code is None:
            self._exit_code = exit_code
        await self._call.close()
