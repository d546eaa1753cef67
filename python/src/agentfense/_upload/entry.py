"""One thing of a local directory, as it will be in the codebase."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Tuple

from agentfense.types import ManifestEntry


@dataclass(frozen=True)
class Entry(ManifestEntry):
    """What a path of a codebase is to be, and where its content is. Of a symbolic link, the mode is None."""

    #: The directory that the path is relative to; absolute.
    top: str = field(default="", repr=False, compare=False)

    @property
    def place(self) -> Tuple[Tuple[str, ...], str]:
        """The names of the directories on the way, and its own."""
        *parents, name = self.path.split("/")
        return tuple(parents), name
