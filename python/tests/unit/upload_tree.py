"""Trees on the disk, written down as dicts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import List, Mapping

from agentfense._upload import Entry


def make_tree(top: Path, tree: Mapping[str, str]) -> Path:
    """Paths and what is there: a text is a file, a path that ends in a slash a directory, `-> x` a link."""
    for path, content in tree.items():
        place = top / path
        (place if path.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            continue
        if content.startswith("-> "):
            os.symlink(content[3:], place)
        else:
            place.write_bytes(content.encode("utf-8", "surrogateescape"))
    return top


def paths_of(entries: List[Entry]) -> List[str]:
    """Directories with a slash at the end."""
    return [f"{entry.path}/" if entry.kind == "directory" else entry.path for entry in entries]
