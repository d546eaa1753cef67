"""Processes of sandboxes, which this machine sees though sandboxes do not see each other's."""

from __future__ import annotations

import random
from pathlib import Path


class Sleeper:
    """A program that sleeps for longer than any test, and can be told from all others."""

    def __init__(self) -> None:
        self._seconds = f"1000.{random.getrandbits(48)}"
        self.command = f"sleep {self._seconds}"

    def runs(self) -> bool:
        """Whether it does, anywhere on this machine."""
        return any(self._is_it(process) for process in Path("/proc").iterdir() if process.name.isdecimal())

    def _is_it(self, process: Path) -> bool:
        try:
            return (process / "cmdline").read_bytes() == f"sleep\0{self._seconds}\0".encode()
        except OSError:
            return False  # It is over.
