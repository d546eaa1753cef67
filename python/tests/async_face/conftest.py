"""What the tests of this face may ask for."""

from __future__ import annotations

from typing import AsyncIterator

import pytest

from agentfense import AsyncSandboxClient
from agentfense.types import Codebase, SandboxInfo
from tests.server import Server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[AsyncSandboxClient]:
    """A client of the server of all tests."""
    async with AsyncSandboxClient(server.endpoint) as one:
        yield one


@pytest.fixture
async def codebase(client: AsyncSandboxClient) -> AsyncIterator[Codebase]:
    """A codebase with two files, which goes with everything that uses it."""
    made = await client.create_codebase("project", "tester")
    await client.upload_file(made.id, "README.md", "# Project\n")
    await client.upload_file(made.id, "src/app.py", "print('hello')\n")
    yield await client.get_codebase(made.id)
    await client.delete_codebase(made.id, force=True)


@pytest.fixture
async def sandbox(client: AsyncSandboxClient, codebase: Codebase) -> SandboxInfo:
    """A running sandbox of that codebase in which everything is allowed; its changes wait to be applied."""
    made = await client.create_sandbox(codebase.id, preset="full-access", sync="manual")
    return await client.start_sandbox(made.id)
