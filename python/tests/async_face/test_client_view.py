"""Files of a sandbox's view, call by call, against a real server."""

from __future__ import annotations

import builtins

import pytest

from agentfense import (
    AsyncSandboxClient,
    CodebaseError,
    EntryKind,
    FileChange,
    FileNotFoundError,
    Permission,
    PermissionDeniedError,
)
from agentfense.types import Codebase, SandboxInfo


async def test_a_file_is_written_and_read(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    written = await client.write_file(sandbox.id, "notes.txt", "one\n", mode=0o600)
    assert (written.path, written.name, written.size, written.mode & 0o777) == ("notes.txt", "notes.txt", 4, 0o600)
    assert (written.kind, written.permission, written.sha256) == (EntryKind.FILE, Permission.WRITE, "")
    await client.write_file(sandbox.id, "notes.txt", [b"two", b"\n"], append=True)
    assert await client.read_file_bytes(sandbox.id, "notes.txt") == b"one\ntwo\n"
    await client.write_file(sandbox.id, "notes.txt", "", attributes={"a.b": "ü", "c": "d"}, attribute_prefix="a.")
    await client.write_file(sandbox.id, "notes.txt", "", attributes={"a.e": "f"}, attribute_prefix="a.")
    assert (await client.stat_file(sandbox.id, "notes.txt", attributes=True)).attributes == {"a.e": "f", "c": "d"}
    assert (await client.stat_file(sandbox.id, "notes.txt")).attributes is None
    large = bytes(range(256)) * 8192
    await client.write_file(sandbox.id, "large", large)
    async with client.read_file(sandbox.id, "large") as stream:
        pieces = [piece async for piece in stream]
    assert len(pieces) > 1
    assert b"".join(pieces) == large
    assert (await client.exec(sandbox.id, "wc -c < large")).stdout.strip() == str(len(large))


async def test_a_directory_is_made_listed_moved_and_removed(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    made = await client.make_directory(sandbox.id, "a/b", recursive=True)
    assert made.is_dir
    await client.write_file(sandbox.id, "a/b/c", "x")
    assert [file.path for file in await client.list_directory(sandbox.id, "a", recursive=True)] == ["a/b", "a/b/c"]
    assert [file.name for file in await client.list_directory(sandbox.id)] == ["README.md", "a", "src"]
    with pytest.raises(CodebaseError) as exists:
        await client.make_directory(sandbox.id, "a")
    assert exists.value.code == "FILE_EXISTS"
    moved = await client.move_file(sandbox.id, "a/b/c", "a/d")
    assert moved.path == "a/d"
    assert (await client.stat_file(sandbox.id, "a/d")).size == 1
    with pytest.raises(CodebaseError) as full:
        await client.remove_file(sandbox.id, "a")
    assert full.value.code == "FILE_WRONG_KIND"
    await client.remove_file(sandbox.id, "a", recursive=True)
    with pytest.raises(FileNotFoundError) as missing:
        await client.stat_file(sandbox.id, "a")
    assert missing.value.code == "FILE_NOT_FOUND"
    assert isinstance(missing.value, builtins.FileNotFoundError)


async def test_the_rules_apply(client: AsyncSandboxClient, codebase: Codebase) -> None:
    rules = [{"pattern": "/README.md", "permission": "read"}, {"pattern": "/src/**", "permission": "view"}]
    sandbox = await client.create_sandbox(codebase.id, rules)
    await client.start_sandbox(sandbox.id)
    with pytest.raises(PermissionDeniedError) as refused:
        await client.write_file(sandbox.id, "README.md", "mine")
    assert refused.value.code == "FILE_PERMISSION_DENIED"
    assert isinstance(refused.value, PermissionError)
    with pytest.raises(PermissionDeniedError):
        await client.read_file_bytes(sandbox.id, "src/app.py")
    await client.update_permissions(sandbox.id, [])
    with pytest.raises(FileNotFoundError):
        await client.read_file_bytes(sandbox.id, "README.md")


async def test_a_watch_tells_from_the_moment_it_is_on(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    watch = await client.watch_files(sandbox.id, "src", recursive=True)
    await client.write_file(sandbox.id, "src/new.py", "x")
    assert await watch.__anext__() == FileChange("rename", "new.py", "made")
    await watch.close()
    assert [change async for change in watch] == []
    with pytest.raises(FileNotFoundError):
        await client.watch_files(sandbox.id, "nowhere")


async def test_a_watch_ends_with_the_sandbox(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    watch = await client.watch_files(sandbox.id)
    await client.stop_sandbox(sandbox.id)
    assert [change async for change in watch if change.filename != ""] == []
