"""What all tests may ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Iterator, Mapping, Union

import pytest

from tests.server import Server

MakeProject = Callable[[Mapping[str, Union[str, bytes]]], Path]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server of all tests that do not harm it; others start one of their own."""
    with Server.start() as one:
        yield one


@pytest.fixture
def project(tmp_path: Path) -> MakeProject:
    """Makes a directory with these files: paths and contents."""

    def make(files: Mapping[str, Union[str, bytes]]) -> Path:
        top = tmp_path / "project"
        top.mkdir()
        for path, content in files.items():
            file = top / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        return top

    return make
