"""What comes of a call, item by item."""

from __future__ import annotations

from types import TracebackType
from typing import AsyncIterator, Callable, Generic, Optional, Type, TypeVar

from typing_extensions import Protocol

from agentfense.exceptions import SandboxError

T = TypeVar("T")
Answer = TypeVar("Answer")
AnswerCo = TypeVar("AnswerCo", covariant=True)


class AsyncAnswers(Protocol[AnswerCo]):
    """The messages that a server answers with."""

    async def __anext__(self) -> AnswerCo: ...

    async def close(self) -> None:
        """Ends the call, also for whoever waits for an answer."""


class _NoAnswers(Generic[Answer]):
    async def __anext__(self) -> Answer:
        raise StopAsyncIteration

    async def close(self) -> None:
        pass


class AsyncCallStream(AsyncIterator[T], Generic[T]):
    """What comes of a call, item by item. Closing it, or leaving its `async with` block, ends the call at once.

    So does letting go of it: a loop that is left early ends what runs on the server.
    """

    def __init__(
        self,
        answers: AsyncAnswers[Answer],
        convert: Callable[[Answer], T],
        *,
        is_last: Callable[[T], bool] = lambda _: False,
        ended_early: Optional[Callable[[], SandboxError]] = None,
    ) -> None:
        async def take() -> T:
            return convert(await answers.__anext__())

        self._take = take
        self._end = answers.close
        self._is_last = is_last
        self._ended_early = ended_early
        self._is_over = False

    @classmethod
    def empty(cls) -> AsyncCallStream[T]:
        """Of a call that need not be made."""

        def convert(answer: T) -> T:
            return answer

        return AsyncCallStream(_NoAnswers[T](), convert)

    def __aiter__(self) -> AsyncCallStream[T]:
        return self

    async def __anext__(self) -> T:
        if self._is_over:
            raise StopAsyncIteration
        try:
            item = await self._take()
        except StopAsyncIteration:
            if self._was_closed() or self._ended_early is None:
                raise
            raise self._ended_early() from None
        if self._is_last(item):
            await self.close()
        return item

    async def close(self) -> None:
        """Ends the call, also for whoever waits for an item."""
        self._is_over = True
        await self._end()

    # async only
    async def aclose(self) -> None:
        """The same, under the name that asynchronous generators have for it."""
        await self.close()

    # end async only

    async def __aenter__(self) -> AsyncCallStream[T]:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    def _was_closed(self) -> bool:
        """By somebody else, while this one waited."""
        return self._is_over
