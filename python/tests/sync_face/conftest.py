# Generated from tests/async_face/conftest.py by scripts/generate_sync.py: change it there.
"""What the tests of this face may ask for."""

from __future__ import annotations

from typing import Iterator

import pytest

from agentfense import SandboxClient
from agentfense.types import Codebase, SandboxInfo
from tests.server import Server


@pytest.fixture
def client(server: Server) -> Iterator[SandboxClient]:
    """A client of the server of all tests."""
    with SandboxClient(server.endpoint) as one:
        yield one


@pytest.fixture
def codebase(client: SandboxClient) -> Iterator[Codebase]:
    """A codebase with two files, which goes with everything that uses it."""
    made = client.create_codebase("project", "tester")
    client.upload_file(made.id, "README.md", "# Project\n")
    client.upload_file(made.id, "src/app.py", "print('hello')\n")
    yield client.get_codebase(made.id)
    client.delete_codebase(made.id, force=True)


@pytest.fixture
def sandbox(client: SandboxClient, codebase: Codebase) -> SandboxInfo:
    """A running sandbox of that codebase in which everything is allowed; its changes wait to be applied."""
    made = client.create_sandbox(codebase.id, preset="full-access", sync="manual")
    return client.start_sandbox(made.id)
