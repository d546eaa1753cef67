# Generated from tests/async_face/test_files.py by scripts/generate_sync.py: change it there.
"""The files of a running sandbox, as a process inside sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest

from agentfense import (
    EntryKind,
    FileNotFoundError,
    InvalidConfigurationError,
    Permission,
    PermissionDeniedError,
    Sandbox,
)
from tests.concurrency.sync_face import at_once
from tests.server import Server

FILES = {"a.txt": "grün\n", "src/b.txt": "b\n", "docs/c.txt": "c\n", "secrets/key": "!"}
RULES = [
    {"pattern": "**/*", "permission": "read"},
    {"pattern": "/src/**", "permission": "write"},
    {"pattern": "/secrets/**", "permission": "none"},
]


@pytest.fixture
def sandbox(server: Server, tmp_path: Path) -> Iterator[Sandbox]:
    for path, content in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    with Sandbox.from_local(tmp_path, permissions=RULES, endpoint=server.endpoint) as sandbox:
        yield sandbox


def test_reading(sandbox: Sandbox) -> None:
    files = sandbox.files
    for path in ("a.txt", "/a.txt", "/workspace/a.txt", "./a.txt"):
        assert files.read_file(path, "utf-8") == "grün\n"
    assert files.read_file("a.txt") == "grün\n".encode()
    assert b"".join([piece for piece in files.read_stream("a.txt")]) == "grün\n".encode()
    assert sandbox.read_file("/workspace/a.txt") == "grün\n"
    assert sandbox.read_file_bytes("a.txt") == "grün\n".encode()


def test_listing(sandbox: Sandbox) -> None:
    files = sandbox.files
    assert sorted(files.readdir("/workspace")) == ["a.txt", "docs", "src"]
    assert sorted(files.readdir("", recursive=True)) == ["a.txt", "docs", "docs/c.txt", "src", "src/b.txt"]
    assert files.readdir("src") == ["b.txt"]
    (info,) = files.readdir("docs", with_file_types=True)
    assert (info.path, info.name, info.kind, info.permission) == (
        "/docs/c.txt",
        "c.txt",
        EntryKind.FILE,
        Permission.READ,
    )
    assert (info.is_file, info.is_dir, info.is_symlink) == (True, False, False)
    assert sorted(sandbox.list_files()) == ["a.txt", "docs", "src"]
    assert sandbox.list_files("/workspace/src", recursive=True) == ["src/b.txt"]


def test_writing_moving_and_removing(sandbox: Sandbox) -> None:
    files = sandbox.files
    files.mkdir("src/made/deep", recursive=True)
    files.write_file("src/made/deep/a.txt", "one\n", mode=0o755)
    assert files.stat("src/made/deep/a.txt").mode & 0o777 == 0o755
    files.append_file("/src/made/deep/a.txt", b"two\n")
    files.write_file("src/made/deep/a.txt", iter([b"three", b"\n"]), flag="a")
    assert sandbox.run("cat src/made/deep/a.txt").stdout == "one\ntwo\nthree\n"
    files.rename("src/made/deep/a.txt", "src/made/b.txt")
    assert sorted(files.readdir("src/made", recursive=True)) == ["b.txt", "deep"]
    files.rm("src/made", recursive=True)
    with pytest.raises(FileNotFoundError):
        files.stat("src/made")
    with pytest.raises(FileNotFoundError):
        files.rm("src/made")
    files.rm("src/made", force=True)
    sandbox.write_file("src/new.txt", "new")
    assert sandbox.read_file("src/new.txt") == "new"
    with pytest.raises(InvalidConfigurationError):
        files.write_file("src/new.txt", "", flag="x")  # type: ignore[arg-type]


def test_the_rules_apply(sandbox: Sandbox) -> None:
    with pytest.raises(FileNotFoundError):
        sandbox.files.read_file("secrets/key")
    with pytest.raises(FileNotFoundError):
        sandbox.read_file("secrets/key")
    with pytest.raises(PermissionDeniedError):
        sandbox.files.write_file("a.txt", "mine now")


def test_a_directory_that_has_the_name_of_the_workspace_is_not_the_workspace(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("src/workspace")
    assert sorted(sandbox.files.readdir("src")) == ["b.txt", "workspace"]


def test_a_watch_sees_every_change_since_its_block_was_entered(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("src/deep")
    awaited = {"deep/first", "second"}
    with sandbox.files.watch("src", recursive=True) as watch:
        sandbox.run("echo x > src/deep/first; echo y > src/second")
        for change in watch:
            awaited.discard(change.filename)
            if not awaited:
                watch.close()
    assert [change for change in watch] == []


def test_a_watch_is_on_when_it_is_ready_and_closing_ends_the_loop_over_it(sandbox: Sandbox) -> None:
    watch = sandbox.files.watch("src")
    watch.ready()

    def loop() -> int:
        return len([change for change in watch])

    def close() -> int:
        watch.close()
        return 0

    assert at_once([loop, close]) == [0, 0]


def test_a_watch_that_was_closed_stays_closed(sandbox: Sandbox) -> None:
    watch = sandbox.files.watch("src")
    watch.close()
    assert [change for change in watch] == []
    with pytest.raises(InvalidConfigurationError, match="the watch is closed"):
        watch.ready()


def test_a_watch_of_what_is_not_there_says_so(sandbox: Sandbox) -> None:
    with pytest.raises(FileNotFoundError):
        with sandbox.files.watch("nothing-there"):
            raise AssertionError("it was entered")
