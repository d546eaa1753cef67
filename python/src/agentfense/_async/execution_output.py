"""One output of a command, as far as it does not go to a loop."""

from __future__ import annotations

from typing import Optional

from agentfense._face.callback import AsyncCallback
from agentfense._sandbox.output import Collection, OutputCallback, TextPieces


class AsyncOutput:
    """What goes to a callback, and what is kept for the result."""

    def __init__(self, callback: Optional[OutputCallback]) -> None:
        self.kept = Collection()
        self._callback = callback
        self._text = TextPieces()

    @property
    def is_heard(self) -> bool:
        """Whether it has a callback: then no loop sees it."""
        return self._callback is not None

    async def tell(self, data: bytes) -> None:
        """Tells the callback, if there is one, and keeps what it was told."""
        if self._callback is None:
            return
        self.kept.add(data)
        await self._tell(self._callback, self._text.add(data))

    async def end(self) -> None:
        """Tells what there is left of a character that was never completed."""
        if self._callback is not None:
            await self._tell(self._callback, self._text.end())

    async def _tell(self, callback: OutputCallback, text: str) -> None:
        if text != "":
            await AsyncCallback.tell(callback, text)
