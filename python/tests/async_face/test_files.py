"""The files of a running sandbox, as a process inside sees them."""

from __future__ import annotations

from pathlib import Path
from typing import AsyncIterator

import pytest

from agentfense import (
    AsyncSandbox,
    EntryKind,
    FileNotFoundError,
    InvalidConfigurationError,
    Permission,
    PermissionDeniedError,
)
from tests.concurrency.async_face import at_once
from tests.server import Server

FILES = {"a.txt": "grün\n", "src/b.txt": "b\n", "docs/c.txt": "c\n", "secrets/key": "!"}
RULES = [
    {"pattern": "**/*", "permission": "read"},
    {"pattern": "/src/**", "permission": "write"},
    {"pattern": "/secrets/**", "permission": "none"},
]


@pytest.fixture
async def sandbox(server: Server, tmp_path: Path) -> AsyncIterator[AsyncSandbox]:
    for path, content in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    async with AsyncSandbox.from_local(tmp_path, permissions=RULES, endpoint=server.endpoint) as sandbox:
        yield sandbox


async def test_reading(sandbox: AsyncSandbox) -> None:
    files = sandbox.files
    for path in ("a.txt", "/a.txt", "/workspace/a.txt", "./a.txt"):
        assert await files.read_file(path, "utf-8") == "grün\n"
    assert await files.read_file("a.txt") == "grün\n".encode()
    assert b"".join([piece async for piece in files.read_stream("a.txt")]) == "grün\n".encode()
    assert await sandbox.read_file("/workspace/a.txt") == "grün\n"
    assert await sandbox.read_file_bytes("a.txt") == "grün\n".encode()


async def test_listing(sandbox: AsyncSandbox) -> None:
    files = sandbox.files
    assert sorted(await files.readdir("/workspace")) == ["a.txt", "docs", "src"]
    assert sorted(await files.readdir("", recursive=True)) == ["a.txt", "docs", "docs/c.txt", "src", "src/b.txt"]
    assert await files.readdir("src") == ["b.txt"]
    (info,) = await files.readdir("docs", with_file_types=True)
    assert (info.path, info.name, info.kind, info.permission) == (
        "/docs/c.txt",
        "c.txt",
        EntryKind.FILE,
        Permission.READ,
    )
    assert (info.is_file, info.is_dir, info.is_symlink) == (True, False, False)
    assert sorted(await sandbox.list_files()) == ["a.txt", "docs", "src"]
    assert await sandbox.list_files("/workspace/src", recursive=True) == ["src/b.txt"]


async def test_writing_moving_and_removing(sandbox: AsyncSandbox) -> None:
    files = sandbox.files
    await files.mkdir("src/made/deep", recursive=True)
    await files.write_file("src/made/deep/a.txt", "one\n", mode=0o755)
    assert (await files.stat("src/made/deep/a.txt")).mode & 0o777 == 0o755
    await files.append_file("/src/made/deep/a.txt", b"two\n")
    await files.write_file("src/made/deep/a.txt", iter([b"three", b"\n"]), flag="a")
    assert (await sandbox.run("cat src/made/deep/a.txt")).stdout == "one\ntwo\nthree\n"
    await files.rename("src/made/deep/a.txt", "src/made/b.txt")
    assert sorted(await files.readdir("src/made", recursive=True)) == ["b.txt", "deep"]
    await files.rm("src/made", recursive=True)
    with pytest.raises(FileNotFoundError):
        await files.stat("src/made")
    with pytest.raises(FileNotFoundError):
        await files.rm("src/made")
    await files.rm("src/made", force=True)
    await sandbox.write_file("src/new.txt", "new")
    assert await sandbox.read_file("src/new.txt") == "new"
    with pytest.raises(InvalidConfigurationError):
        await files.write_file("src/new.txt", "", flag="x")  # type: ignore[arg-type]


async def test_the_rules_apply(sandbox: AsyncSandbox) -> None:
    with pytest.raises(FileNotFoundError):
        await sandbox.files.read_file("secrets/key")
    with pytest.raises(FileNotFoundError):
        await sandbox.read_file("secrets/key")
    with pytest.raises(PermissionDeniedError):
        await sandbox.files.write_file("a.txt", "mine now")


async def test_a_directory_that_has_the_name_of_the_workspace_is_not_the_workspace(sandbox: AsyncSandbox) -> None:
    await sandbox.files.mkdir("src/workspace")
    assert sorted(await sandbox.files.readdir("src")) == ["b.txt", "workspace"]


async def test_a_watch_sees_every_change_since_its_block_was_entered(sandbox: AsyncSandbox) -> None:
    await sandbox.files.mkdir("src/deep")
    awaited = {"deep/first", "second"}
    async with sandbox.files.watch("src", recursive=True) as watch:
        await sandbox.run("echo x > src/deep/first; echo y > src/second")
        async for change in watch:
            awaited.discard(change.filename)
            if not awaited:
                await watch.close()
    assert [change async for change in watch] == []


async def test_a_watch_is_on_when_it_is_ready_and_closing_ends_the_loop_over_it(sandbox: AsyncSandbox) -> None:
    watch = sandbox.files.watch("src")
    await watch.ready()

    async def loop() -> int:
        return len([change async for change in watch])

    async def close() -> int:
        await watch.close()
        return 0

    assert await at_once([loop, close]) == [0, 0]


async def test_a_watch_that_was_closed_stays_closed(sandbox: AsyncSandbox) -> None:
    watch = sandbox.files.watch("src")
    await watch.close()
    assert [change async for change in watch] == []
    with pytest.raises(InvalidConfigurationError, match="the watch is closed"):
        await watch.ready()


async def test_a_watch_of_what_is_not_there_says_so(sandbox: AsyncSandbox) -> None:
    with pytest.raises(FileNotFoundError):
        async with sandbox.files.watch("nothing-there"):
            raise AssertionError("it was entered")
