# Generated from tests/async_face/test_client_view.py by scripts/generate_sync.py: change it there.
"""Files of a sandbox's view, call by call, against a real server."""

from __future__ import annotations

import builtins

import pytest

from agentfense import (
    CodebaseError,
    EntryKind,
    FileChange,
    FileNotFoundError,
    Permission,
    PermissionDeniedError,
    SandboxClient,
)
from agentfense.types import Codebase, SandboxInfo


def test_a_file_is_written_and_read(client: SandboxClient, sandbox: SandboxInfo) -> None:
    written = client.write_file(sandbox.id, "notes.txt", "one\n", mode=0o600)
    assert (written.path, written.name, written.size, written.mode & 0o777) == ("notes.txt", "notes.txt", 4, 0o600)
    assert (written.kind, written.permission, written.sha256) == (EntryKind.FILE, Permission.WRITE, "")
    client.write_file(sandbox.id, "notes.txt", [b"two", b"\n"], append=True)
    assert client.read_file_bytes(sandbox.id, "notes.txt") == b"one\ntwo\n"
    client.write_file(sandbox.id, "notes.txt", "", attributes={"a.b": "ü", "c": "d"}, attribute_prefix="a.")
    client.write_file(sandbox.id, "notes.txt", "", attributes={"a.e": "f"}, attribute_prefix="a.")
    assert client.stat_file(sandbox.id, "notes.txt", attributes=True).attributes == {"a.e": "f", "c": "d"}
    assert client.stat_file(sandbox.id, "notes.txt").attributes is None
    large = bytes(range(256)) * 8192
    client.write_file(sandbox.id, "large", large)
    with client.read_file(sandbox.id, "large") as stream:
        pieces = [piece for piece in stream]
    assert len(pieces) > 1
    assert b"".join(pieces) == large
    assert client.exec(sandbox.id, "wc -c < large").stdout.strip() == str(len(large))


def test_a_directory_is_made_listed_moved_and_removed(client: SandboxClient, sandbox: SandboxInfo) -> None:
    made = client.make_directory(sandbox.id, "a/b", recursive=True)
    assert made.is_dir
    client.write_file(sandbox.id, "a/b/c", "x")
    assert [file.path for file in client.list_directory(sandbox.id, "a", recursive=True)] == ["a/b", "a/b/c"]
    assert [file.name for file in client.list_directory(sandbox.id)] == ["README.md", "a", "src"]
    with pytest.raises(CodebaseError) as exists:
        client.make_directory(sandbox.id, "a")
    assert exists.value.code == "FILE_EXISTS"
    moved = client.move_file(sandbox.id, "a/b/c", "a/d")
    assert moved.path == "a/d"
    assert client.stat_file(sandbox.id, "a/d").size == 1
    with pytest.raises(CodebaseError) as full:
        client.remove_file(sandbox.id, "a")
    assert full.value.code == "FILE_WRONG_KIND"
    client.remove_file(sandbox.id, "a", recursive=True)
    with pytest.raises(FileNotFoundError) as missing:
        client.stat_file(sandbox.id, "a")
    assert missing.value.code == "FILE_NOT_FOUND"
    assert isinstance(missing.value, builtins.FileNotFoundError)


def test_the_rules_apply(client: SandboxClient, codebase: Codebase) -> None:
    rules = [{"pattern": "/README.md", "permission": "read"}, {"pattern": "/src/**", "permission": "view"}]
    sandbox = client.create_sandbox(codebase.id, rules)
    client.start_sandbox(sandbox.id)
    with pytest.raises(PermissionDeniedError) as refused:
        client.write_file(sandbox.id, "README.md", "mine")
    assert refused.value.code == "FILE_PERMISSION_DENIED"
    assert isinstance(refused.value, PermissionError)
    with pytest.raises(PermissionDeniedError):
        client.read_file_bytes(sandbox.id, "src/app.py")
    client.update_permissions(sandbox.id, [])
    with pytest.raises(FileNotFoundError):
        client.read_file_bytes(sandbox.id, "README.md")


def test_a_watch_tells_from_the_moment_it_is_on(client: SandboxClient, sandbox: SandboxInfo) -> None:
    watch = client.watch_files(sandbox.id, "src", recursive=True)
    client.write_file(sandbox.id, "src/new.py", "x")
    assert watch.__next__() == FileChange("rename", "new.py", "made")
    watch.close()
    assert [change for change in watch] == []
    with pytest.raises(FileNotFoundError):
        client.watch_files(sandbox.id, "nowhere")


def test_a_watch_ends_with_the_sandbox(client: SandboxClient, sandbox: SandboxInfo) -> None:
    watch = client.watch_files(sandbox.id)
    client.stop_sandbox(sandbox.id)
    assert [change for change in watch if change.filename != ""] == []
