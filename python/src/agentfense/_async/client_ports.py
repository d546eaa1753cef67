"""Ports of sandboxes, as the client reaches them."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Type, Union

from agentfense._async.client_base import AsyncClientPart
from agentfense._connection.method import SandboxService
from agentfense._face.async_face import Duplex
from agentfense._face.turn import AsyncTurn
from agentfense._messages.content import pieces
from agentfense._messages.numbers import count
from agentfense._messages.time import duration_message, moment, seconds_of
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import ConnectionError
from agentfense.types import PortInfo, Seconds

_LARGEST_UINT32 = 2**32 - 1
_DEFAULT_WAIT = 30.0


class AsyncPortMethods(AsyncClientPart):
    """What listens in sandboxes."""

    async def get_port(self, sandbox_id: str, port: int, *, expires_in: Optional[Seconds] = None) -> PortInfo:
        """Where a port of a sandbox is reached over HTTP, with a token that opens it.

        Args:
            sandbox_id: Whose.
            port: Which.
            expires_in: How long the token is valid; default: an hour, at most a week.
        """
        request = sandbox_pb2.GetPortRequest(
            sandbox_id=sandbox_id,
            port=count(port, "port", _LARGEST_UINT32),
            expires_in=duration_message(expires_in, "expires_in"),
        )
        found = await self._calls.unary(SandboxService.get_port, request)
        return PortInfo(
            sandbox_id=found.sandbox_id,
            port=found.port,
            url=found.url,
            host_url=found.host_url,
            token=found.token,
            expires_at=moment(found.expires_at),
        )

    async def wait_for_port(self, sandbox_id: str, port: int, *, timeout: Optional[Seconds] = None) -> None:
        """Returns when something in the sandbox accepts connections there.

        Args:
            sandbox_id: Whose.
            port: Which.
            timeout: PortClosedError when nothing has by then; default: 30 s, at most ten minutes.
        """
        seconds = seconds_of(timeout, "timeout")
        request = sandbox_pb2.WaitForPortRequest(
            sandbox_id=sandbox_id,
            port=count(port, "port", _LARGEST_UINT32),
            timeout=duration_message(timeout, "timeout"),
        )
        patience = _DEFAULT_WAIT if seconds is None else seconds
        await self._calls.command(SandboxService.wait_for_port, request, patience)

    async def connect_port(self, sandbox_id: str, port: int) -> AsyncPortConnection:
        """A connection to what listens at a port of a running sandbox."""
        first = sandbox_pb2.PortData(
            open=sandbox_pb2.PortData.Open(sandbox_id=sandbox_id, port=count(port, "port", _LARGEST_UINT32))
        )
        call = self._calls.duplex(SandboxService.forward_port, first)
        try:
            await call.__anext__()  # an empty one: it is open
        except StopAsyncIteration:
            raise ConnectionError("the connection was not opened", code="CONNECTION_FAILED") from None
        return AsyncPortConnection(call)


class AsyncPortConnection:
    """A connection to a port of a sandbox. `AsyncSandboxPort.connect` makes one.

    A loop over it gives what comes, in bytes; what is not read holds the sender up. The end of its `with` block closes
    it.
    """

    def __init__(self, call: Duplex[sandbox_pb2.PortData, sandbox_pb2.PortData]) -> None:
        """For `AsyncSandboxPort.connect`, which makes one."""
        self._call = call
        self._turn = AsyncTurn()
        self._has_ended = False

    def __aiter__(self) -> AsyncPortConnection:
        return self

    async def __anext__(self) -> bytes:
        """What comes next."""
        async with self._turn:
            while not self._has_ended:
                message = await self._call.__anext__()
                self._has_ended = message.end
                if message.data:
                    return message.data
        raise StopAsyncIteration

    async def write(self, data: Union[str, bytes]) -> None:
        """Returns when it is on its way. Nothing happens after the other side is gone."""
        for piece in pieces(data):
            await self._call.send(sandbox_pb2.PortData(data=piece))

    async def end(self) -> None:
        """Says that no more is written; what comes can still be read."""
        await self._call.send(sandbox_pb2.PortData(end=True))

    async def close(self) -> None:
        """Ends both directions."""
        await self._call.close()

    async def __aenter__(self) -> AsyncPortConnection:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()
