"""A small project in a sandbox of each face, and frameworks that report to nobody."""

from __future__ import annotations

from pathlib import Path
from typing import AsyncIterator, Iterator, List

import pytest

from agentfense import AsyncSandbox, RuleLike, Sandbox
from tests.conftest import MakeProject
from tests.server import Server

FILES = {
    "README.md": "# Greeter\n",
    ".env": "TOKEN=s3cret\n",
    "src/greet.sh": 'name="world"\necho "hello $name"\n',
}
RULES: List[RuleLike] = [
    {"pattern": "**/*", "permission": "read"},
    {"pattern": "/src/**", "permission": "write"},
    {"pattern": ".env*", "permission": "none", "priority": 100},
]


@pytest.fixture(autouse=True)
def _stay_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each framework calls the switch of what it reports to its makers."""
    for switch in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(switch, "false")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")


@pytest.fixture
def directory(project: MakeProject) -> Path:
    """A project with a secret."""
    return project(FILES)


@pytest.fixture
def sandbox(server: Server, directory: Path) -> Iterator[Sandbox]:
    """The secret is hidden, the source may be written, the rest may be read."""
    with Sandbox.from_local(directory, permissions=RULES, endpoint=server.endpoint) as sandbox:
        yield sandbox


@pytest.fixture
async def async_sandbox(server: Server, directory: Path) -> AsyncIterator[AsyncSandbox]:
    """The same for asyncio."""
    async with AsyncSandbox.from_local(directory, permissions=RULES, endpoint=server.endpoint) as sandbox:
        yield sandbox
