"""A directory that was uploaded, and a codebase that has moved on."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from agentfense._local_copy import LocalCopy
from agentfense.types import ApplyOutcome, Change, ChangeKind, EntryKind, ManifestEntry

#: "/" is a directory, `-> x` a link, any other text a file.
Tree = Mapping[str, str]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def outcome(kind: str, path: str, *, old_path: str = "", type: str = "file", applied: bool = True) -> ApplyOutcome:
    """What became of a change in the codebase."""
    change = Change(ChangeKind(kind), path, old_path, EntryKind(type), 0)
    return ApplyOutcome(change, applied, "" if applied else "level read", sensitive=False, conflict=False)


def brief(outcomes: Sequence[ApplyOutcome]) -> List[Tuple[str, bool, bool, str]]:
    return [(each.change.path, each.applied, each.conflict, each.reason) for each in outcomes]


class Scene:
    def __init__(self, tmp_path: Path) -> None:
        self.scratch = Path(os.path.realpath(tmp_path))
        self.top = self.scratch / "project"
        self.top.mkdir()
        self._copy: Optional[LocalCopy] = None

    def upload(self, tree: Tree) -> LocalCopy:
        """Puts a tree on the disk and takes it for what was uploaded."""
        for path, value in tree.items():
            place = self.top / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if value == "/":
                place.mkdir(exist_ok=True)
            elif value.startswith("-> "):
                os.symlink(value[3:], place)
            else:
                place.write_text(value)
        self._copy = LocalCopy(str(self.top), self.entries(tree).values())
        return self._copy

    def entries(self, tree: Tree, modes: Optional[Mapping[str, int]] = None) -> Dict[str, ManifestEntry]:
        return {path: _entry_of(path, value, (modes or {}).get(path)) for path, value in tree.items()}

    def write(
        self,
        outcomes: Sequence[ApplyOutcome],
        now: Tree,
        *,
        modes: Optional[Mapping[str, int]] = None,
        sent: Optional[Tree] = None,
        failing: Optional[Mapping[str, str]] = None,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> List[ApplyOutcome]:
        """The changes, of a codebase that has this after them. `meanwhile` happens when all content has arrived."""
        assert self._copy is not None, "upload first"
        with self._copy.write(outcomes, self.entries(now, modes)) as writing:
            while True:
                content = writing.next_content()
                if content is None:
                    return writing.outcomes
                if content.path in (failing or {}):
                    content.fail(OSError((failing or {})[content.path]))
                    continue
                data = (sent or now)[content.path].encode()
                middle = len(data) // 2
                for piece in (data[:middle], data[middle:]):
                    content.write(piece)
                meanwhile()

    def on_disk(self) -> Dict[str, str]:
        """Everything below the directory, links as links."""
        found: Dict[str, str] = {}
        for directory, directories, files in os.walk(self.top):
            for name in directories + files:
                place = Path(directory, name)
                path = str(place.relative_to(self.top))
                if place.is_symlink():
                    found[path] = f"-> {os.readlink(place)}"
                else:
                    found[path] = "/" if place.is_dir() else place.read_text()
        return found

    def mode(self, path: str) -> int:
        return os.lstat(self.top / path).st_mode & 0o7777


def _entry_of(path: str, value: str, mode: Optional[int]) -> ManifestEntry:
    if value == "/":
        return ManifestEntry(path, EntryKind.DIRECTORY, mode)
    if value.startswith("-> "):
        return ManifestEntry(path, EntryKind.SYMLINK, target=value[3:])
    return ManifestEntry(path, EntryKind.FILE, mode, len(value), sha256(value))
