# Generated from src/agentfense/_async/execution_output.py by scripts/generate_sync.py: change it there.
"""One output of a command, as far as it does not go to a loop."""

from __future__ import annotations

from typing import Optional

from agentfense._face.callback import Callback
from agentfense._sandbox.output import Collection, OutputCallback, TextPieces


class Output:
    """What goes to a callback, and what is kept for the result."""

    def __init__(self, callback: Optional[OutputCallback]) -> None:
        self.kept = Collection()
        self._callback = callback
        self._text = TextPieces()

    @property
    def is_heard(self) -> bool:
        """Whether it has a callback: then no loop sees it."""
        return self._callback is not None

    def tell(self, data: bytes) -> None:
        """Tells the callback, if there is one, and keeps what it was told."""
        if self._callback is None:
            return
        self.kept.add(data)
        self._tell(self._callback, self._text.add(data))

    def end(self) -> None:
        """Tells what there is left of a character that was never completed."""
        if self._callback is not None:
            self._tell(self._callback, self._text.end())

    def _tell(self, callback: OutputCallback, text: str) -> None:
        if text != "":
            Callback.tell(callback, text)
