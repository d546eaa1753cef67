"""A folder whose files are all made by a script: brought up to date, or only compared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import List, Mapping


class GeneratedFolder:
    """The files below `top`. Those of the interpreter (`__pycache__`) are nobody's."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def differences(self, wanted: Mapping[str, bytes]) -> List[str]:
        """What is missing, different or too much, as paths below the folder."""
        present = self._present()
        names = sorted(present.keys() | wanted.keys())
        return [name for name in names if present.get(name) != wanted.get(name)]

    def write(self, wanted: Mapping[str, bytes]) -> None:
        """Writes what differs and removes what is no longer made; an unchanged file keeps its time."""
        for name in self.differences(wanted):
            path = self.top / name
            if name in wanted:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(wanted[name])
            else:
                path.unlink()
                _remove_empty(path.parent, below=self.top)

    def _present(self) -> Mapping[str, bytes]:
        files = (path for path in self.top.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {path.relative_to(self.top).as_posix(): path.read_bytes() for path in files}


def bring_up_to_date(top: Path, wanted: Mapping[str, bytes], *, check: bool) -> bool:
    """Writes the folder; with `check` it is only compared, and every difference is named. True when it is as wanted."""
    folder = GeneratedFolder(top)
    differences = folder.differences(wanted)
    if not check:
        folder.write(wanted)
        return True
    for name in differences:
        print(f"not up to date: {top / name} (npm run generate)", file=sys.stderr)
    return not differences


def _remove_empty(directory: Path, *, below: Path) -> None:
    while directory != below and not any(directory.iterdir()):
        directory.rmdir()
        directory = directory.parent
