# Generated from src/agentfense/_async/client_base.py by scripts/generate_sync.py: change it there.
"""What the parts of the client have in common."""

from __future__ import annotations

from typing import Iterable, Iterator, List, Optional, Tuple, TypeVar

from typing_extensions import Protocol

from agentfense._face.sync_face import iterate
from agentfense._messages.content import pieces
from agentfense._sync.client_calls import Calls
from agentfense.types import Content

T = TypeVar("T")
Item = TypeVar("Item", covariant=True)


class ClientPart:
    """Some of the client's methods."""

    _calls: Calls


class Page(Protocol[Item]):
    """Fetches one page of a list; the first has the token "", and after the last comes "" again."""

    def __call__(self, token: str) -> Tuple[Iterable[Item], str]: ...


def all_pages(fetch: Page[T], limit: Optional[int] = None) -> List[T]:
    """Everything that there is, page by page; no more pages than it takes to reach the limit."""
    items, token = fetch("")
    everything = list(items)
    while token != "" and (limit is None or len(everything) < limit):
        items, token = fetch(token)
        everything.extend(items)
    return everything[:limit]


def is_repeatable(content: Content) -> bool:
    """What comes in pieces can be read once only."""
    return isinstance(content, (str, bytes, bytearray, memoryview))


def content_pieces(content: Content) -> Iterator[bytes]:
    """Content in pieces that fit a message."""
    if isinstance(content, (str, bytes, bytearray, memoryview)):
        for piece in pieces(content):
            yield piece
    else:
        for data in iterate(content):
            for piece in pieces(data):
                yield piece
