"""The synchronous face: gRPC of ordinary threads, and the few other things that wait."""

from __future__ import annotations

import time
from collections import deque
from threading import Condition, Lock
from types import TracebackType
from typing import Any, AsyncIterable, Callable, Deque, Generic, Iterable, Iterator, Optional, Type, TypeVar, Union
from weakref import WeakSet

import grpc
from typing_extensions import ParamSpec

from agentfense._connection.endpoint import Endpoint
from agentfense._connection.errors import closed_error, failure_of, sandbox_error
from agentfense._connection.method import Method, Req, Res
from agentfense._connection.options import call_metadata, channel_credentials, channel_options
from agentfense.exceptions import InvalidConfigurationError

P = ParamSpec("P")
T = TypeVar("T")

sleep = time.sleep


class Transport:
    """Calls to one server. A channel is made with the first of them."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._metadata = call_metadata(endpoint)
        self._channel: Optional[grpc.Channel] = None
        self._opening = Lock()
        self._calls: WeakSet[Any] = WeakSet()
        self.is_closed = False

    def unary(self, method: Method[Req, Res], request: Req, *, timeout: Optional[float]) -> Res:
        """One message there, one back."""
        make: Any = self._open().unary_unary(
            method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
        )
        response: Res = self._result(make.future(request, timeout=timeout, metadata=self._metadata), timeout)
        return response

    def client_stream(self, method: Method[Req, Res], requests: Iterable[Req], *, timeout: Optional[float]) -> Res:
        """Many messages there, one back. What making the messages fails with is raised as it is."""
        make: Any = self._open().stream_unary(
            method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
        )
        source = _Source(requests)
        try:
            response: Res = self._result(make.future(source, timeout=timeout, metadata=self._metadata), timeout)
        except BaseException:
            if source.failure is not None:
                raise source.failure from None
            raise
        return response

    def server_stream(self, method: Method[Req, Res], request: Req, *, timeout: Optional[float]) -> Stream[Res]:
        """One message there, many back. It is sent at once."""
        make: Any = self._open().unary_stream(
            method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
        )
        return Stream(self, self._begun(make(request, timeout=timeout, metadata=self._metadata)), timeout)

    def exchange(
        self, method: Method[Req, Res], requests: Iterable[Req], *, timeout: Optional[float] = None
    ) -> Exchange[Req, Res]:
        """Many messages in both directions, taken from an iterable as the call goes on."""
        make: Any = self._open().stream_stream(
            method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
        )
        source = _Source(requests)
        return Exchange(self, self._begun(make(source, timeout=timeout, metadata=self._metadata)), timeout, source)

    def duplex(self, method: Method[Req, Res], first: Req, *, timeout: Optional[float] = None) -> Duplex[Req, Res]:
        """Many messages in both directions, given one by one. The first is sent at once."""
        make: Any = self._open().stream_stream(
            method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
        )
        messages = _Messages(first)
        call = self._begun(make(messages, timeout=timeout, metadata=self._metadata))
        # The thread that waits for messages ends with the call.
        if not call.add_callback(messages.end):
            messages.end()
        return Duplex(self, call, timeout, messages)

    def close(self) -> None:
        """No call begins any more, and those that run fail."""
        with self._opening:
            self.is_closed = True
            channel, self._channel = self._channel, None
        for call in list(self._calls):
            call.cancel()
        if channel is not None:
            channel.close()

    def explained(self, error: BaseException, timeout: Optional[float]) -> BaseException:
        """What a failed call is for its caller. What is none of the call's errors stays what it is."""
        if not isinstance(error, (grpc.RpcError, grpc.FutureCancelledError)):
            return error
        return closed_error() if self.is_closed else sandbox_error(failure_of(error, self.name, timeout))

    def _result(self, call: Any, timeout: Optional[float]) -> Any:
        self._begun(call)
        try:
            return call.result()
        except grpc.RpcError as error:
            raise self.explained(error, timeout) from error
        except grpc.FutureCancelledError as error:
            raise closed_error() from error
        except BaseException:
            # A KeyboardInterrupt: whoever waits no longer wants it no longer.
            call.cancel()
            raise

    def _open(self) -> grpc.Channel:
        with self._opening:
            if self.is_closed:
                raise closed_error()
            if self._channel is None:
                self._channel = _channel_to(self._endpoint)
            return self._channel

    def _begun(self, call: Any) -> Any:
        self._calls.add(call)
        return call


def _channel_to(endpoint: Endpoint) -> grpc.Channel:
    credentials = channel_credentials(endpoint)
    options = channel_options(endpoint)
    if credentials is None:
        return grpc.insecure_channel(endpoint.target, options=options)
    return grpc.secure_channel(endpoint.target, credentials, options=options)


class _Source(Iterator[T]):
    """Messages of a request on their way into gRPC, which forgets why they ended."""

    def __init__(self, messages: Iterable[T]) -> None:
        self._messages = iter(messages)
        self.failure: Optional[BaseException] = None

    def __next__(self) -> T:
        try:
            return next(self._messages)
        except StopIteration:
            raise
        except BaseException as error:
            self.failure = error
            raise


class Stream(Generic[Res]):
    """The answers of a call that has begun. A KeyboardInterrupt while waiting for one ends the call."""

    def __init__(self, transport: Transport, call: Any, timeout: Optional[float]) -> None:
        self._transport = transport
        self._call = call
        self._timeout = timeout
        self._is_closed = False

    def __iter__(self) -> Stream[Res]:
        return self

    def __next__(self) -> Res:
        if self._is_closed:
            raise StopIteration
        try:
            answer: Res = next(self._call)
        except StopIteration:
            raise
        except grpc.RpcError as error:
            if self._was_closed():
                raise StopIteration from None
            raise self._explained(error) from error
        except BaseException:
            self._call.cancel()
            raise
        return answer

    def close(self) -> None:
        """Ends the call, also for whoever waits for an answer."""
        self._is_closed = True
        self._call.cancel()

    def __enter__(self) -> Stream[Res]:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _was_closed(self) -> bool:
        """By somebody else, while this one waited."""
        return self._is_closed

    def _explained(self, error: grpc.RpcError) -> BaseException:
        return self._transport.explained(error, self._timeout)


class Exchange(Stream[Res], Generic[Req, Res]):
    """A call whose messages come from an iterable."""

    def __init__(self, transport: Transport, call: Any, timeout: Optional[float], source: _Source[Req]) -> None:
        super().__init__(transport, call, timeout)
        self._source = source

    def _explained(self, error: grpc.RpcError) -> BaseException:
        return self._source.failure or super()._explained(error)


class _Messages(Iterator[T]):
    """Messages for a call that runs. Whoever gives one waits until it is taken, so that nothing piles up."""

    def __init__(self, first: T) -> None:
        self._changed = Condition()
        self._waiting: Deque[T] = deque([first])
        self._given = 1
        self._taken = 0
        self._is_over = False

    def give(self, message: T) -> None:
        """Returns when the message is taken; at once when nobody takes any more."""
        with self._changed:
            if self._is_over:
                return
            self._waiting.append(message)
            self._given += 1
            ticket = self._given
            self._changed.notify_all()
            # In steps, so that the keyboard is heard.
            while self._taken < ticket and not self._is_over:
                self._changed.wait(0.2)

    def end(self) -> None:
        """No more messages come."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def __next__(self) -> T:
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or len(self._waiting) > 0)
            if not self._waiting:
                raise StopIteration
            self._taken += 1
            self._changed.notify_all()
            return self._waiting.popleft()


class Duplex(Stream[Res], Generic[Req, Res]):
    """A call that takes messages while it answers."""

    def __init__(self, transport: Transport, call: Any, timeout: Optional[float], messages: _Messages[Req]) -> None:
        super().__init__(transport, call, timeout)
        self._messages = messages

    def send(self, message: Req) -> None:
        """Returns when the message is on its way; at once when the call is over, of which the answers tell."""
        self._messages.give(message)

    def finish(self) -> None:
        """Says that no more messages come."""
        self._messages.end()


def opening(function: Callable[P, T]) -> Callable[P, T]:
    """What a function opens is there when it returns."""
    return function


def run_blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls it."""
    return function(*args, **kwargs)


def iterate(items: Union[AsyncIterable[T], Iterable[T]]) -> Iterator[T]:
    """The items."""
    if isinstance(items, AsyncIterable):
        raise InvalidConfigurationError("an asynchronous iterable is for the asynchronous client")
    return iter(items)


def called_here(callback: Callable[[T], None]) -> Callable[[T], None]:
    """The callback itself: there is no loop that it would have to run in."""
    return callback
