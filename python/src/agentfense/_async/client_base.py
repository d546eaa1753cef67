"""What the parts of the client have in common."""

from __future__ import annotations

from typing import AsyncIterator, Iterable, List, Optional, Tuple, TypeVar

from typing_extensions import Protocol

from agentfense._async.client_calls import AsyncCalls
from agentfense._face.async_face import iterate
from agentfense._messages.content import pieces
from agentfense.types import Content

T = TypeVar("T")
Item = TypeVar("Item", covariant=True)


class AsyncClientPart:
    """Some of the client's methods."""

    _calls: AsyncCalls


class AsyncPage(Protocol[Item]):
    """Fetches one page of a list; the first has the token "", and after the last comes "" again."""

    async def __call__(self, token: str) -> Tuple[Iterable[Item], str]: ...


async def all_pages(fetch: AsyncPage[T], limit: Optional[int] = None) -> List[T]:
    """Everything that there is, page by page; no more pages than it takes to reach the limit."""
    items, token = await fetch("")
    everything = list(items)
    while token != "" and (limit is None or len(everything) < limit):
        items, token = await fetch(token)
        everything.extend(items)
    return everything[:limit]


def is_repeatable(content: Content) -> bool:
    """What comes in pieces can be read once only."""
    return isinstance(content, (str, bytes, bytearray, memoryview))


async def content_pieces(content: Content) -> AsyncIterator[bytes]:
    """Content in pieces that fit a message."""
    if isinstance(content, (str, bytes, bytearray, memoryview)):
        for piece in pieces(content):
            yield piece
    else:
        async for data in iterate(content):
            for piece in pieces(data):
                yield piece
