# Generated from src/agentfense/_async/client_calls.py by scripts/generate_sync.py: change it there.
"""Calls over a transport, with what all of them have in common: deadlines and retries."""

from __future__ import annotations

from typing import Generic, Iterable, Optional, TypeVar

from typing_extensions import Protocol

from agentfense._connection.method import Method, Req, Res
from agentfense._connection.retry import Deadline, pause_before
from agentfense._face.sync_face import Duplex, Exchange, Stream, Transport, sleep
from agentfense._sync.client_stream import Answers
from agentfense.exceptions import SandboxError

T = TypeVar("T")
Result = TypeVar("Result", covariant=True)


class Attempt(Protocol[Result]):
    """One attempt of a call, in the seconds that are left for it."""

    def __call__(self, seconds: Optional[float]) -> Result: ...


class Calls:
    """The calls of one client.

    Streams without a deadline rely on keepalive: a server that does not answer pings is gone.
    """

    def __init__(self, transport: Transport, request_timeout: Optional[float], retries: int) -> None:
        self._transport = transport
        self._request_timeout = request_timeout
        self._retries = retries

    @property
    def name(self) -> str:
        """The server's address."""
        return self._transport.name

    def close(self) -> None:
        """No call begins any more, and those that run fail."""
        self._transport.close()

    def patience_for(self, timeout: Optional[float]) -> Optional[float]:
        """How long to wait for the end of a command, which the server ends in time by itself; without one, for ever."""
        if self._request_timeout is None or timeout is None:
            return None
        return timeout + self._request_timeout

    def unary(self, method: Method[Req, Res], request: Req) -> Res:
        """One message there, one back."""
        return self.repeating(
            lambda seconds: self._transport.unary(method, request, timeout=seconds),
            timeout=self._request_timeout,
            repeatable=method.idempotent,
        )

    def command(self, method: Method[Req, Res], request: Req, timeout: Optional[float]) -> Res:
        """The same for a call that runs a command."""
        return self._transport.unary(method, request, timeout=self.patience_for(timeout))

    def server_stream(self, method: Method[Req, Res], request: Req, *, timeout: Optional[float] = None) -> Answers[Res]:
        """One message there, many back. It is sent at once, unless it may have to be sent again."""
        if method.idempotent:
            return RepeatedStream(self, method, request)
        return self.begin_stream(method, request, timeout)

    def begin_stream(self, method: Method[Req, Res], request: Req, timeout: Optional[float]) -> Stream[Res]:
        """The same, sent once."""
        return self._transport.server_stream(method, request, timeout=timeout)

    def client_stream(self, method: Method[Req, Res], requests: Requests[Req], *, repeatable: bool) -> Res:
        """Many messages there, one back. Without a deadline: content may be large."""
        return self.repeating(
            lambda seconds: self._transport.client_stream(method, requests(), timeout=seconds),
            timeout=None,
            repeatable=repeatable and method.idempotent,
        )

    def duplex(self, method: Method[Req, Res], first: Req, *, timeout: Optional[float] = None) -> Duplex[Req, Res]:
        """Many messages in both directions, given one by one."""
        return self._transport.duplex(method, first, timeout=timeout)

    def exchange(
        self, method: Method[Req, Res], requests: Iterable[Req], *, timeout: Optional[float] = None
    ) -> Exchange[Req, Res]:
        """Many messages in both directions, taken from an iterable as the call goes on."""
        return self._transport.exchange(method, requests, timeout=timeout)

    def repeating(self, attempt: Attempt[T], *, timeout: Optional[float], repeatable: bool) -> T:
        """Tries again as long as that may help, with a pause that grows."""
        deadline = Deadline(timeout)
        made = 0
        while True:
            try:
                return attempt(deadline.left())
            except SandboxError as error:
                pause = pause_before(made, error) if repeatable and made < self._retries else None
                if pause is None or not deadline.allows(pause):
                    raise
            made += 1
            sleep(pause)


class Requests(Protocol[Result]):
    """Makes the messages of a streamed request, from the first one on."""

    def __call__(self) -> Iterable[Result]: ...


class RepeatedStream(Generic[Req, Res]):
    """A stream that is tried again up to its first answer: whoever has seen one would see it again."""

    def __init__(self, calls: Calls, method: Method[Req, Res], request: Req) -> None:
        self._calls = calls
        self._method = method
        self._request = request
        self._stream: Optional[Stream[Res]] = None
        self._is_closed = False

    def __next__(self) -> Res:
        if self._is_closed:
            raise StopIteration
        if self._stream is not None:
            return self._stream.__next__()
        first = self._calls.repeating(lambda _: self._begin(), timeout=None, repeatable=True)
        if first is None:
            raise StopIteration
        return first

    def close(self) -> None:
        """Ends the call, also for whoever waits for an answer."""
        self._is_closed = True
        if self._stream is not None:
            self._stream.close()

    def _begin(self) -> Optional[Res]:
        """The first answer; None where there is none at all, or nobody wants it any more."""
        if self._is_closed:
            return None
        self._stream = self._calls.begin_stream(self._method, self._request, None)
        try:
            return self._stream.__next__()
        except StopIteration:
            return None
