# Generated from tests/async_face/test_opening.py by scripts/generate_sync.py: change it there.
"""How sandboxes come to be and go, and what is left of those that do not."""

from __future__ import annotations

import os
import socket
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from agentfense import (
    ConnectionError,
    InvalidConfigurationError,
    ProjectPolicyError,
    Sandbox,
    SandboxClient,
    SandboxNotFoundError,
    SandboxStatus,
    UploadProgress,
)
from agentfense._face.sync_face import sleep
from tests.concurrency.sync_face import at_once, interrupted
from tests.server import Server
from tests.support.patience import Patience

NOTHING = (0, 0)


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """Nobody else's, so that what is left on it is known."""
    with Server.start() as server:
        yield server


@pytest.fixture
def client(own_server: Server) -> Iterator[SandboxClient]:
    """Each test begins with an empty server, and so must not leave anything."""
    with SandboxClient(own_server.endpoint) as client:
        assert remains(client) == NOTHING
        yield client
        assert remains(client) == NOTHING


def remains(client: SandboxClient) -> Tuple[int, int]:
    """How many codebases and sandboxes the server has."""
    return len(client.list_codebases()), len(client.list_sandboxes())


def project(top: Path, files: Dict[str, str]) -> Path:
    for path, content in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(content)
    return top


# Whose a sandbox is.


def test_one_that_was_opened_here_goes_with_its_codebase_at_the_end_of_the_block(
    client: SandboxClient, tmp_path: Path
) -> None:
    with Sandbox.from_local(project(tmp_path, {"a.txt": "a"}), endpoint=client.name):
        with Sandbox.create(endpoint=client.name):
            assert remains(client) == (2, 2)
        assert remains(client) == (1, 1)


def test_so_does_one_that_was_awaited_and_whose_block_is_left_by_an_exception(
    client: SandboxClient,
) -> None:
    sandbox = Sandbox.create(endpoint=client.name)
    with pytest.raises(ZeroDivisionError):
        with sandbox:
            raise ZeroDivisionError


def test_what_went_wrong_first_is_what_is_heard(client: SandboxClient) -> None:
    own = SandboxClient(client.name)
    sandbox = Sandbox.create(client=own)
    # Now it cannot even be destroyed.
    own.close()
    with pytest.raises(ZeroDivisionError):
        with sandbox:
            raise ZeroDivisionError
    with Sandbox.connect(sandbox.id, client=client) as left:
        left.destroy(delete_codebase=True)


def test_whoever_gives_up_inside_of_the_block_leaves_nothing_behind(client: SandboxClient) -> None:
    begun: List[str] = []

    def work() -> None:
        with Sandbox.create(client=client) as sandbox:
            sandbox.run("echo begun; sleep 600", timeout=590, on_stdout=begun.append)

    interrupted(work, after=partial(Patience.until_heard, begun))


def test_a_codebase_that_was_there_stays(client: SandboxClient) -> None:
    codebase = client.create_codebase("there", "me")
    client.upload_file(codebase.id, "a.txt", "first")
    client.upload_file(codebase.id, "a.txt", "second")
    with Sandbox.from_codebase(codebase.id, endpoint=client.name, codebase_version=1) as pinned:
        assert pinned.run("cat a.txt").stdout == "first"
    with Sandbox.create(codebase.id, endpoint=client.name, auto_start=False) as newest:
        assert newest.status is SandboxStatus.PENDING
        newest.start()
        assert newest.run("cat a.txt").stdout == "second"
    assert remains(client) == (1, 0)
    client.delete_codebase(codebase.id)


def test_one_that_was_connected_to_stays_and_is_the_same(client: SandboxClient) -> None:
    with Sandbox.create(endpoint=client.name, preset="full-access") as own:
        with Sandbox.connect(own.id, client.name) as other:
            other.write_file("a.txt", "written there")
            assert other.codebase == own.codebase
        assert own.read_file("a.txt") == "written there"
        assert [info.id for info in Sandbox.list(endpoint=client.name)] == [own.id]
        assert Sandbox.list(client=client, labels={"no": "such"}) == []
    with pytest.raises(SandboxNotFoundError):
        Sandbox.connect("sb_0123456789abcdef", client.name)


def test_destroying_twice_is_once(client: SandboxClient) -> None:
    with Sandbox.create(endpoint=client.name) as sandbox:
        sandbox.destroy()
        sandbox.destroy()
        assert sandbox.status is SandboxStatus.STOPPED
        with pytest.raises(SandboxNotFoundError):
            sandbox.refresh()


def test_a_codebase_that_others_use_by_now_stays_with_them(client: SandboxClient) -> None:
    with Sandbox.create(endpoint=client.name) as first:
        second = Sandbox.from_codebase(first.codebase_id, client=client)
    assert remains(client) == (1, 1)
    second.destroy(delete_codebase=True)


def test_a_client_that_was_handed_in_is_used_and_left_open(client: SandboxClient) -> None:
    with Sandbox.create(client=client) as sandbox:
        assert sandbox.client is client
    assert remains(client) == NOTHING


def test_closing_lets_go_of_the_connection_and_of_nothing_else(client: SandboxClient) -> None:
    sandbox = Sandbox.create(endpoint=client.name)
    sandbox.close()
    sandbox.close()
    with pytest.raises(ConnectionError):
        sandbox.run("true")
    again = Sandbox.connect(sandbox.id, client=client)
    assert again.status is SandboxStatus.RUNNING
    again.destroy(delete_codebase=True)


# An opening that fails leaves nothing behind: the client fixture looks.


@pytest.mark.parametrize(
    "wrong",
    [
        {"preset": "no-such-preset"},
        {"permissions": [{"pattern": "", "permission": "read"}]},
        {"permissions": [{"pattern": "/a", "permission": "execute"}]},
        {"env": {"NOT A NAME=": "x"}},
        {"expires_in": 0},
        {"runtime": "no-such-runtime"},
    ],
)
def test_what_is_wrong_is_said(client: SandboxClient, tmp_path: Path, wrong: Dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigurationError):
        Sandbox.from_local(project(tmp_path, {"a.txt": "a"}), client=client, **wrong)


def test_a_directory_that_is_none_or_not_there(client: SandboxClient, tmp_path: Path) -> None:
    project(tmp_path, {"a.txt": "a"})
    for path in (tmp_path / "a.txt", tmp_path / "missing"):
        with pytest.raises(ValueError, match=path.name):
            Sandbox.from_local(path, client=client)


def test_a_progress_callback_that_raises_ends_the_upload(client: SandboxClient, tmp_path: Path) -> None:
    project(tmp_path, {"a.bin": "x" * 4_000_000, "b.bin": "y" * 4_000_000})

    def enough(progress: UploadProgress) -> None:
        if progress.phase == "uploading":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Sandbox.from_local(tmp_path, client=client, on_progress=enough)


def test_a_start_that_fails(client: SandboxClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = client.start_sandbox
    monkeypatch.setattr(client, "start_sandbox", lambda sandbox_id: start(f"{sandbox_id}0"))
    with pytest.raises(SandboxNotFoundError):
        Sandbox.from_local(project(tmp_path, {"a.txt": "a"}), client=client)


def test_whoever_gives_up_while_it_is_uploaded(client: SandboxClient, tmp_path: Path) -> None:
    project(tmp_path, {f"{name}.bin": name * 8_000_000 for name in "abcdef"})
    seen: List[str] = []

    def look(progress: UploadProgress) -> None:
        seen.append(progress.phase)

    work = partial(Sandbox.from_local, tmp_path, client=client, on_progress=look)
    interrupted(work, after=partial(Patience.until, lambda: "uploading" in seen))


@pytest.mark.parametrize("call", ["create_codebase", "create_sandbox", "start_sandbox"])
def test_whoever_gives_up_while_something_is_made(
    client: SandboxClient, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """What the server has made is removed, though its answer comes too late for whoever waited for it."""
    make = getattr(client, call)
    seen: List[str] = []

    def slowly(*args: Any, **words: Any) -> Any:
        made = make(*args, **words)
        seen.append(call)
        sleep(0.5)
        return made

    monkeypatch.setattr(client, call, slowly)
    interrupted(partial(Sandbox.create, client=client), after=partial(Patience.until, lambda: seen))


def test_nobody_there() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionError):
        Sandbox.create(endpoint=f"127.0.0.1:{port}", retries=0)


# The project's own policy, and what of it is uploaded.

POLICY = (
    'version: 1\npermissions:\n  - { pattern: "/a.txt", permission: write }\nenv: { FROM: policy }\nignore: [c.txt]\n'
)


def test_the_policy_counts_when_the_caller_says_nothing(client: SandboxClient, tmp_path: Path) -> None:
    project(tmp_path, {".agentfense.yaml": POLICY, "a.txt": "a", "b.txt": "b", "c.txt": "c"})
    with Sandbox.from_local(tmp_path, client=client) as sandbox:
        assert sandbox.run("ls -A; echo $FROM").stdout == "a.txt\npolicy\n"
    with Sandbox.from_local(tmp_path, "read-only", client=client) as sandbox:
        assert sandbox.run("ls; echo $FROM").stdout == "a.txt\nb.txt\npolicy\n"
    with Sandbox.from_local(tmp_path, client=client, policy=False) as sandbox:
        assert sandbox.run("ls; echo $FROM").stdout == "a.txt\nb.txt\nc.txt\n\n"


def test_a_policy_that_cannot_be_understood_stops_the_opening(client: SandboxClient, tmp_path: Path) -> None:
    project(tmp_path, {".agentfense.yaml": "version: 1\npermisions: []\n"})
    with pytest.raises(ProjectPolicyError):
        Sandbox.from_local(tmp_path, client=client)


def test_ignored_files_and_git_stay_behind_links_stay_links_and_modes_stay(
    client: SandboxClient, tmp_path: Path
) -> None:
    project(tmp_path, {".gitignore": "*.log\n", "a.txt": "a", "b.log": "b", "c.tmp": "c", ".git/config": "[core]"})
    (tmp_path / "link").symlink_to("a.txt")
    os.chmod(tmp_path / "a.txt", 0o755)
    phases: List[str] = []
    with Sandbox.from_local(
        tmp_path,
        "read-only",
        client=client,
        ignore_patterns=["*.tmp"],
        on_progress=lambda progress: phases.append(progress.phase),
    ) as sandbox:
        result = sandbox.run("ls -A; readlink link; test -x a.txt && echo executable")
    assert result.stdout == ".gitignore\na.txt\nlink\na.txt\nexecutable\n"
    assert sorted(set(phases)) == ["reading", "uploading"]


# The sandbox of a key.


def test_the_sandbox_of_a_key_is_made_then_found_started_and_left_alone(client: SandboxClient, tmp_path: Path) -> None:
    project(tmp_path, {"a.txt": "a"})
    with Sandbox.get_or_create("job", path=tmp_path, endpoint=client.name) as first:
        assert first.status is SandboxStatus.RUNNING
        first.stop()
    again = Sandbox.get_or_create("job", path=tmp_path, client=client)
    assert (again.id, again.status) == (first.id, SandboxStatus.RUNNING)
    other = Sandbox.get_or_create("another job", client=client)
    assert other.id != first.id
    keys = [info.labels["agentfense-key"] for info in client.list_sandboxes()]
    assert sorted(keys) == ["another job", "job"]
    again.destroy(delete_codebase=True)
    # Whoever made it has made its codebase, too.
    other.destroy()


def test_callers_that_race_end_with_the_same_one(client: SandboxClient, tmp_path: Path) -> None:
    project(tmp_path, {"a.txt": "a"})
    of_directory = partial(Sandbox.get_or_create, "race", path=tmp_path, client=client)
    of_nothing = partial(Sandbox.get_or_create, "race", client=client)
    sandboxes = at_once([of_directory, of_nothing] * 3)
    assert len({sandbox.id for sandbox in sandboxes}) == 1
    assert remains(client) == (1, 1)
    sandboxes[0].destroy(delete_codebase=True)


def test_a_key_needs_a_name_and_at_most_one_thing_to_start_from(client: SandboxClient, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigurationError):
        Sandbox.get_or_create("x", path=tmp_path, codebase_id="cb_0123456789abcdef", client=client)
    with pytest.raises(InvalidConfigurationError):
        Sandbox.get_or_create("", client=client)
