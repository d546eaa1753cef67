# Generated from src/agentfense/_async/client_stream.py by scripts/generate_sync.py: change it there.
"""What comes of a call, item by item."""

from __future__ import annotations

from types import TracebackType
from typing import Callable, Generic, Iterator, Optional, Type, TypeVar

from typing_extensions import Protocol

from agentfense.exceptions import SandboxError

T = TypeVar("T")
Answer = TypeVar("Answer")
AnswerCo = TypeVar("AnswerCo", covariant=True)


class Answers(Protocol[AnswerCo]):
    """The messages that a server answers with."""

    def __next__(self) -> AnswerCo: ...

    def close(self) -> None:
        """Ends the call, also for whoever waits for an answer."""


class _NoAnswers(Generic[Answer]):
    def __next__(self) -> Answer:
        raise StopIteration

    def close(self) -> None:
        pass


class CallStream(Iterator[T], Generic[T]):
    """What comes of a call, item by item. Closing it, or leaving its `with` block, ends the call at once.

    So does letting go of it: a loop that is left early ends what runs on the server.
    """

    def __init__(
        self,
        answers: Answers[Answer],
        convert: Callable[[Answer], T],
        *,
        is_last: Callable[[T], bool] = lambda _: False,
        ended_early: Optional[Callable[[], SandboxError]] = None,
    ) -> None:
        def take() -> T:
            return convert(answers.__next__())

        self._take = take
        self._end = answers.close
        self._is_last = is_last
        self._ended_early = ended_early
        self._is_over = False

    @classmethod
    def empty(cls) -> CallStream[T]:
        """Of a call that need not be made."""

        def convert(answer: T) -> T:
            return answer

        return CallStream(_NoAnswers[T](), convert)

    def __iter__(self) -> CallStream[T]:
        return self

    def __next__(self) -> T:
        if self._is_over:
            raise StopIteration
        try:
            item = self._take()
        except StopIteration:
            if self._was_closed() or self._ended_early is None:
                raise
            raise self._ended_early() from None
        if self._is_last(item):
            self.close()
        return item

    def close(self) -> None:
        """Ends the call, also for whoever waits for an item."""
        self._is_over = True
        self._end()

    def __enter__(self) -> CallStream[T]:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _was_closed(self) -> bool:
        """By somebody else, while this one waited."""
        return self._is_over
