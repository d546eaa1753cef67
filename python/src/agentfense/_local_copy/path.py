"""Paths that a server told of."""

from __future__ import annotations

import os
import re
from typing import Optional, Tuple


def names_of(path: str) -> Optional[Tuple[str, ...]]:
    """The names of a path ("src/a.py"); None when it is none, or could lead out of its directory."""
    names = tuple(path.split("/"))
    return names if all(map(_is_name, names)) else None


def _is_name(name: str) -> bool:
    if name in ("", ".", "..") or "\0" in name or not _is_text(name):
        return False
    # There, these are no names: they separate, and name drives and streams.
    return os.name != "nt" or re.search(r"[\\:]", name) is None


def _is_text(name: str) -> bool:
    """Half a surrogate pair is no name that we could write down."""
    return re.search("[\ud800-\udfff]", name) is None
