"""Whether a path of the local copy may become what the codebase has there now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from agentfense._local_copy.entry import LocalEntry
from agentfense.types import EntryKind, ManifestEntry


@dataclass(frozen=True)
class Decision:
    """What is to be done at a path."""

    replace: bool = False
    #: Why it is left alone, if it is; else "".
    obstacle: str = ""


#: It is like that already.
NOTHING = Decision()
REPLACE = Decision(replace=True)


def decide(*, known: Optional[ManifestEntry], local: Optional[LocalEntry], wanted: Optional[ManifestEntry]) -> Decision:
    """Compares what was uploaded or written by us since, what is there, and what is to be there.

    Only what is as it was uploaded, or as it was last written from here, is ever touched: anything else is somebody's
    work.
    """
    if local is None:
        if wanted is None:
            return NOTHING
        return REPLACE if known is None else Decision(obstacle="it was removed here since the upload")
    if known is None:
        is_file = wanted is not None and wanted.kind is not EntryKind.DIRECTORY
        if wanted is not None and is_file and local.is_same(wanted):
            return NOTHING
        return Decision(obstacle="it is here and was not uploaded")
    if wanted is not None and local.is_same(wanted):
        return NOTHING
    return REPLACE if local.is_same(known) else Decision(obstacle="it changed here since the upload")
