"""Sandboxes of somebody who names no server."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Iterator

import pytest

from agentfense import AsyncSandbox, AsyncSandboxClient, InvalidConfigurationError, SandboxError
from tests.server import CLI, REPOSITORY, Server


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Everything that a private server leaves would be in here."""
    # Not pytest's own directory, whose path is too long for a socket.
    top = Path(tempfile.mkdtemp(prefix="agentfense-private-"))
    node = REPOSITORY / "node_modules" / ".bin" / "node"
    monkeypatch.setenv("AGENTFENSE_COMMAND", shlex.join([str(node) if node.exists() else "node", str(CLI)]))
    monkeypatch.setenv("TMPDIR", str(top))
    for name in ("XDG_RUNTIME_DIR", "AGENTFENSE_ENDPOINT", "AGENTFENSE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    yield top
    shutil.rmtree(top)


async def test_they_have_a_server_of_their_own_which_goes_with_the_last_of_them(place: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    async with AsyncSandbox.from_local(tmp_path) as first:
        assert first.client.name.startswith(f"unix:{place}")
        async with AsyncSandbox.create(preset="full-access") as second:
            assert second.client.name == first.client.name
        assert (await first.run("cat a.txt")).stdout == "a\n"
    assert os.listdir(place) == []


async def test_an_opening_that_fails_leaves_no_server(place: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigurationError):
        await AsyncSandbox.from_local(tmp_path, env={"NOT A NAME=": "x"})
    assert os.listdir(place) == []


async def test_who_looks_for_something_that_exists_has_to_say_where(place: Path) -> None:
    for look in (
        partial(AsyncSandbox.connect, "sb_0123456789abcdef"),
        partial(AsyncSandbox.from_codebase, "cb_0123456789abcdef"),
        partial(AsyncSandbox.create, "cb_0123456789abcdef"),
        partial(AsyncSandbox.get_or_create, "job"),
    ):
        with pytest.raises(InvalidConfigurationError, match="no server is named"):
            await look()
    with pytest.raises(InvalidConfigurationError, match="no server is named"):
        AsyncSandboxClient()
    # Who says how to reach one means a certain one.
    for look in (partial(AsyncSandbox.create, secure=True), partial(AsyncSandbox.create, api_key="af_key")):
        with pytest.raises(InvalidConfigurationError, match="no server is named"):
            await look()
    assert os.listdir(place) == []


async def test_a_server_that_the_environment_names_is_used(
    place: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTFENSE_ENDPOINT", server.endpoint)
    async with AsyncSandbox.create() as sandbox:
        assert sandbox.client.name.endswith(server.endpoint)
    assert os.listdir(place) == []


async def test_a_home_in_a_directory_outlives_them_and_is_of_one_at_a_time(place: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with AsyncSandbox.create(preset="full-access", home=home) as first:
        await first.run("echo login > ~/.token")
        assert first.info.home == str(home)
        with pytest.raises(SandboxError, match=first.id) as refused:
            await AsyncSandbox.create(preset="full-access", home=home)
        assert refused.value.code == "HOME_IN_USE"
    assert (home / ".token").read_text() == "login\n"
    async with AsyncSandbox.create(preset="full-access", home=home) as second:
        assert (await second.run("cat ~/.token")).stdout == "login\n"


async def test_secrets_are_placeholders_there_and_kept_as_long_as_the_server(place: Path, tmp_path: Path) -> None:
    value = "a value of a secret"
    (tmp_path / "key").write_text(f"{value}\n")
    project = tmp_path / "project"
    project.mkdir()
    async with AsyncSandbox.create() as other:
        source = str(tmp_path / "key")
        kept = await other.client.put_secret(
            "KEPT", file=source, hosts=["api.example.com"], place="header X-Key", owner_id=other.info.owner_id
        )
        assert (kept.name, kept.hosts, kept.place) == ("KEPT", ("api.example.com",), "header x-key")
        assert await other.client.list_secrets() == [kept]
        async with AsyncSandbox.from_local(
            project,
            owner_id=other.info.owner_id,
            secrets={"KEPT": "kept", "OWN": {"command": f"cat {source}", "hosts": ["own.example.com"], "in": "body"}},
        ) as sandbox:
            assert sandbox.info.secrets == ("KEPT", "OWN")
            lines = (await sandbox.run("printenv KEPT OWN")).stdout.splitlines()
            assert [len(line) for line in lines] == [len(value), len(value)]
            assert value not in lines
        await other.client.delete_secret("KEPT", owner_id=other.info.owner_id)
        with pytest.raises(SandboxError) as missing:
            await AsyncSandbox.create(client=other.client, secrets=["KEPT"])
        assert missing.value.code == "SECRET_NOT_FOUND"
    assert os.listdir(place) == []
