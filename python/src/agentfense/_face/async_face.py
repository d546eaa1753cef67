"""The asynchronous face: gRPC over asyncio, and the few other things that wait."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import wraps
from types import TracebackType
from typing import (
    Any,
    AsyncContextManager,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Generic,
    Iterable,
    List,
    Optional,
    Type,
    TypeVar,
    Union,
)
from weakref import WeakSet

import grpc
import grpc.aio
from typing_extensions import ParamSpec

from agentfense._connection.endpoint import Endpoint
from agentfense._connection.errors import closed_error, failure_of, sandbox_error
from agentfense._connection.method import Method, Req, Res
from agentfense._connection.options import call_metadata, channel_credentials, channel_options

P = ParamSpec("P")
T = TypeVar("T")
Opened = TypeVar("Opened", bound=AsyncContextManager[Any])

# What writing fails with when the call is over.
_OVER = (grpc.aio.AioRpcError, grpc.aio.InternalError, asyncio.InvalidStateError)

sleep = asyncio.sleep
run_blocking = asyncio.to_thread


class Transport:
    """Calls to one server. A channel is made with the first of them, and belongs to the loop that this one runs in."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._metadata = call_metadata(endpoint)
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._channel: Optional[grpc.aio.Channel] = None
        self._calls: WeakSet[Any] = WeakSet()
        self.is_closed = False

    async def unary(self, method: Method[Req, Res], request: Req, *, timeout: Optional[float]) -> Res:
        """One message there, one back."""
        make: Any = self._open().unary_unary(
            method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
        )
        call = self._begun(make(request, timeout=timeout, metadata=self._metadata))
        try:
            response: Res = await call
        except BaseException as error:
            raise self.explained(error, timeout) from error
        return response

    async def client_stream(
        self, method: Method[Req, Res], requests: AsyncIterable[Req], *, timeout: Optional[float]
    ) -> Res:
        """Many messages there, one back. What making the messages fails with is raised as it is."""
        make: Any = self._open().stream_unary(
            method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
        )
        call = self._begun(make(timeout=timeout, metadata=self._metadata))
        try:
            await _send_all(call, requests)
            response: Res = await call
        except BaseException as error:
            call.cancel()
            raise self.explained(error, timeout) from error
        return response

    def server_stream(self, method: Method[Req, Res], request: Req, *, timeout: Optional[float]) -> Stream[Res]:
        """One message there, many back. It is sent at once."""
        make: Any = self._open().unary_stream(
            method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
        )
        return Stream(self, self._begun(make(request, timeout=timeout, metadata=self._metadata)), timeout)

    def duplex(self, method: Method[Req, Res], first: Req, *, timeout: Optional[float] = None) -> Duplex[Req, Res]:
        """Many messages in both directions, given one by one. The first is sent at once."""
        return Duplex(self, self._begin_both(method, timeout), timeout, first)

    def exchange(
        self, method: Method[Req, Res], requests: AsyncIterable[Req], *, timeout: Optional[float] = None
    ) -> Exchange[Req, Res]:
        """Many messages in both directions, taken from an iterable as the call goes on."""
        return Exchange(self, self._begin_both(method, timeout), timeout, requests)

    def _begin_both(self, method: Method[Req, Res], timeout: Optional[float]) -> Any:
        make: Any = self._open().stream_stream(
            method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
        )
        return self._begun(make(timeout=timeout, metadata=self._metadata))

    async def close(self) -> None:
        """No call begins any more, and those that run fail."""
        self.is_closed = True
        for call in list(self._calls):
            call.cancel()
        channel, self._channel = self._channel, None
        if channel is not None and self._loop is asyncio.get_running_loop():
            await channel.close()

    def explained(self, error: BaseException, timeout: Optional[float]) -> BaseException:
        """What a failed call is for its caller. What is none of the call's errors stays what it is."""
        if isinstance(error, grpc.aio.AioRpcError):
            return closed_error() if self.is_closed else sandbox_error(failure_of(error, self.name, timeout))
        # Cancelling a call, as closing does, looks to whoever waits for it as if he himself were cancelled.
        if isinstance(error, asyncio.CancelledError) and self.is_closed and not _is_cancelled():
            return closed_error()
        return error

    def _open(self) -> grpc.aio.Channel:
        if self.is_closed:
            raise closed_error()
        loop = asyncio.get_running_loop()
        if self._channel is None or self._loop is not loop:
            self._loop = loop
            self._channel = _channel_to(self._endpoint)
        return self._channel

    def _begun(self, call: Any) -> Any:
        inner = getattr(call, "_cython_call", None)
        if inner is not None:
            call._cython_call = _TellingHowItEnded(inner)
        self._calls.add(call)
        return call


class _TellingHowItEnded:
    """
    A call that the server has ended while a message was on its way fails in gRPC with "Internal error from Core",
    which takes the place of how the server ended it. Without that the writer waits for the server's own words, which
    are there or about to come.
    """

    def __init__(self, call: Any) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def set_internal_error(self, details: str) -> None:
        pass


def _channel_to(endpoint: Endpoint) -> grpc.aio.Channel:
    credentials = channel_credentials(endpoint)
    options = channel_options(endpoint)
    if credentials is None:
        return grpc.aio.insecure_channel(endpoint.target, options=options)
    return grpc.aio.secure_channel(endpoint.target, credentials, options=options)


async def _send_all(call: Any, requests: AsyncIterable[Req]) -> None:
    """Sends until the end, or until nobody reads any more: how the call ended then says why."""
    try:
        async for request in requests:
            try:
                await call.write(request)
            except _OVER:
                return
        with suppress(grpc.aio.InternalError):
            await call.done_writing()
    finally:
        close = getattr(requests, "aclose", None)
        if close is not None:
            await close()


def _is_cancelled() -> bool:
    """Somebody cancelled the task that runs. Before 3.11 there is no way to know."""
    cancelling: Callable[[], int] = getattr(asyncio.current_task(), "cancelling", lambda: 0)
    return cancelling() > 0


class Stream(Generic[Res]):
    """The answers of a call that has begun. Whoever is cancelled while waiting for one ends the call."""

    def __init__(self, transport: Transport, call: Any, timeout: Optional[float]) -> None:
        self._transport = transport
        self._call = call
        self._answers: AsyncIterator[Res] = call.__aiter__()
        self._timeout = timeout
        self._is_closed = False

    def __del__(self) -> None:
        # A call of gRPC refers to itself: without this it would go on for a while when nobody wants its answers.
        self._call.cancel()

    def __aiter__(self) -> Stream[Res]:
        return self

    async def __anext__(self) -> Res:
        if self._is_closed:
            raise StopAsyncIteration
        try:
            return await self._answers.__anext__()
        except StopAsyncIteration:
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and self._was_closed() and not _is_cancelled():
                raise StopAsyncIteration from None
            raise self._explained(error) from error

    async def close(self) -> None:
        """Ends the call, also for whoever waits for an answer."""
        self._is_closed = True
        self._call.cancel()

    async def __aenter__(self) -> Stream[Res]:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    def _was_closed(self) -> bool:
        """By somebody else, while this one waited."""
        return self._is_closed

    def _explained(self, error: BaseException) -> BaseException:
        return self._transport.explained(error, self._timeout)


class Exchange(Stream[Res], Generic[Req, Res]):
    """A call whose messages come from an iterable, which is let go of when the call is over."""

    def __init__(self, transport: Transport, call: Any, timeout: Optional[float], requests: AsyncIterable[Req]) -> None:
        super().__init__(transport, call, timeout)
        self._failures: List[Exception] = []
        sending = asyncio.ensure_future(_send_beside(call, requests, self._failures))
        call.add_done_callback(lambda _: sending.cancel())

    def _explained(self, error: BaseException) -> BaseException:
        return self._failures[0] if self._failures else super()._explained(error)


async def _send_beside(call: Any, requests: AsyncIterable[Req], failures: List[Exception]) -> None:
    """Sends while others wait for the answers, and hear there of what making the messages failed with."""
    try:
        await _send_all(call, requests)
    except Exception as error:
        failures.append(error)
        call.cancel()


class Duplex(Stream[Res], Generic[Req, Res]):
    """A call that takes messages while it answers."""

    def __init__(self, transport: Transport, call: Any, timeout: Optional[float], first: Req) -> None:
        super().__init__(transport, call, timeout)
        # gRPC takes one message at a time.
        self._turn = asyncio.Lock()
        beginning = asyncio.ensure_future(self._send(first))
        call.add_done_callback(lambda _: beginning.cancel())
        self._beginning = beginning

    def __del__(self) -> None:
        # A call that is forgotten ends itself, but for the callback that keeps it.
        if not self._beginning.get_loop().is_closed():
            self._call.cancel()

    async def send(self, message: Req) -> None:
        """Returns when the message is on its way; at once when the call is over, of which the answers tell."""
        await asyncio.wait([self._beginning])
        await self._send(message)

    async def finish(self) -> None:
        """Says that no more messages come."""
        await asyncio.wait([self._beginning])
        async with self._turn:
            if not self._is_closed:
                with suppress(grpc.aio.InternalError):
                    await self._call.done_writing()

    async def _send(self, message: Req) -> None:
        async with self._turn:
            if self._is_closed:
                return
            try:
                await self._call.write(message)
            except _OVER:
                return
            except asyncio.CancelledError:
                # The call may have been ended from here, by somebody else.
                if _is_cancelled() or not (self._was_closed() or self._transport.is_closed):
                    raise


class Opening(Coroutine[Any, Any, Opened]):
    """Something that is being opened: awaited, it is there; in `async with`, it is also closed in the end."""

    def __init__(self, opening: Coroutine[Any, Any, Opened]) -> None:
        self._opening = opening
        self._opened: List[Opened] = []

    def __await__(self) -> Generator[Any, Any, Opened]:
        return self._opening.__await__()

    async def __aenter__(self) -> Opened:
        opened = await self._opening
        await opened.__aenter__()
        self._opened.append(opened)
        return opened

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> Optional[bool]:
        return await self._opened.pop().__aexit__(kind, error, trace)

    # As any coroutine, for `asyncio.create_task` and the like.

    def send(self, value: Any) -> Any:
        """As of any coroutine."""
        return self._opening.send(value)

    def throw(self, *error: Any) -> Any:
        """As of any coroutine."""
        return self._opening.throw(*error)

    def close(self) -> None:
        """As of any coroutine."""
        self._opening.close()


def opening(function: Callable[P, Coroutine[Any, Any, Opened]]) -> Callable[P, Opening[Opened]]:
    """Lets what a function opens be awaited, or used in `async with` without `await`."""

    @wraps(function)
    def open_later(*args: P.args, **kwargs: P.kwargs) -> Opening[Opened]:
        return Opening(function(*args, **kwargs))

    return open_later


_END = object()


async def iterate(items: Union[AsyncIterable[T], Iterable[T]]) -> AsyncIterator[T]:
    """The items of either kind of iterable. One that may block does so in another thread."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    iterator = iter(items)
    while True:
        next_item: Any = await asyncio.to_thread(next, iterator, _END)
        if next_item is _END:
            return
        yield next_item


def called_here(callback: Callable[[T], None]) -> Callable[[T], None]:
    """A callback for another thread, which waits until it has run in this loop and hears of what it raises."""
    loop = asyncio.get_running_loop()

    async def call(value: T) -> None:
        callback(value)

    return lambda value: asyncio.run_coroutine_threadsafe(call(value), loop).result()
