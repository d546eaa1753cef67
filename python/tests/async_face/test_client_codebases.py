"""Codebases, one call of the client after the other, against a real server."""

from __future__ import annotations

import hashlib
import io
import tarfile
from typing import AsyncIterator, Iterator, List

import pytest

from agentfense import (
    AsyncSandboxClient,
    BatchEntry,
    CodebaseError,
    CodebaseNotFoundError,
    EntryKind,
    FileNotFoundError,
    InvalidConfigurationError,
    ManifestEntry,
    UploadError,
    VersionConflictError,
    VersionOrigin,
)
from agentfense.types import Codebase, VersionChange


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def file_entry(path: str, content: bytes) -> BatchEntry:
    return BatchEntry(path, size=len(content), sha256=sha256(content), content=content)


async def test_a_codebase_is_made_found_and_deleted(client: AsyncSandboxClient) -> None:
    made = await client.create_codebase("mine", "somebody")
    assert (made.name, made.owner_id, made.size, made.file_count, made.version) == ("mine", "somebody", 0, 0, 0)
    assert made.created_at.tzinfo is not None
    assert await client.get_codebase(made.id) == made
    assert made in await client.list_codebases("somebody")
    assert made not in await client.list_codebases("somebody-else")
    await client.delete_codebase(made.id)
    with pytest.raises(CodebaseNotFoundError) as raised:
        await client.get_codebase(made.id)
    assert (raised.value.code, raised.value.grpc_code, raised.value.retryable) == (
        "CODEBASE_NOT_FOUND",
        "NOT_FOUND",
        False,
    )


async def test_a_codebase_in_use_is_deleted_by_force_only(client: AsyncSandboxClient) -> None:
    codebase = await client.create_codebase("mine", "somebody")
    sandbox = await client.create_sandbox(codebase.id)
    with pytest.raises(CodebaseError) as raised:
        await client.delete_codebase(codebase.id)
    assert raised.value.code == "CODEBASE_IN_USE"
    await client.delete_codebase(codebase.id, force=True)
    assert sandbox.id not in [each.id for each in await client.list_sandboxes()]


async def test_a_list_has_what_does_not_fit_one_page(client: AsyncSandboxClient, codebase: Codebase) -> None:
    entries = [file_entry(f"many/{number:04}", b"x") for number in range(1200)]
    await client.batch_upload(codebase.id, entries)
    files = await client.list_files(codebase.id, "many")
    assert [file.name for file in files] == [f"{number:04}" for number in range(1200)]


async def test_a_file_is_uploaded_from_text_bytes_and_pieces(client: AsyncSandboxClient, codebase: Codebase) -> None:
    text = await client.upload_file(codebase.id, "text", "é")
    assert (text.path, text.size, text.sha256) == ("text", 2, sha256("é".encode()))
    assert (text.checksum, text.file_path, text.version) == (text.sha256, "text", codebase.version + 1)
    large = bytes(range(256)) * 4096
    await client.upload_file(codebase.id, "large", bytearray(large), mode=0o755, sha256=sha256(large))
    await client.upload_file(codebase.id, "pieces", [b"one ", b"", b"two"])
    assert await client.download_file(codebase.id, "large") == large
    assert await client.download_file(codebase.id, "pieces") == b"one two"
    listed = {file.path: file for file in await client.list_files(codebase.id)}
    assert listed["large"].mode & 0o777 == 0o755
    assert listed["src"].is_dir
    assert listed["text"].is_file


async def test_pieces_that_fail_are_the_error_and_nothing_is_uploaded(
    client: AsyncSandboxClient, codebase: Codebase
) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        await client.upload_file(codebase.id, "half", broken())
    with pytest.raises(FileNotFoundError):
        await client.download_file(codebase.id, "half")


# async only
async def test_pieces_may_come_asynchronously(client: AsyncSandboxClient, codebase: Codebase) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    await client.upload_file(codebase.id, "pieces", pieces())
    assert await client.download_file(codebase.id, "pieces") == b"one two"


# end async only


async def test_what_arrives_is_what_was_announced(client: AsyncSandboxClient, codebase: Codebase) -> None:
    with pytest.raises(UploadError) as raised:
        await client.upload_file(codebase.id, "a", b"content", sha256=sha256(b"other"))
    assert raised.value.code == "UPLOAD_MISMATCH"
    with pytest.raises(InvalidConfigurationError) as refused:
        await client.upload_file(codebase.id, "../a", b"content")
    assert refused.value.code == "INVALID_ARGUMENT"


async def test_a_link_stays_a_link(client: AsyncSandboxClient, codebase: Codebase) -> None:
    await client.upload_symlink(codebase.id, "link", "src/app.py")
    [link] = [file for file in await client.list_files(codebase.id) if file.name == "link"]
    assert (link.kind, link.target, link.is_symlink) == (EntryKind.SYMLINK, "src/app.py", True)


async def test_a_file_comes_in_pieces(client: AsyncSandboxClient, codebase: Codebase) -> None:
    content = b"0123456789abcdef" * 65536
    await client.upload_file(codebase.id, "large", content)
    async with client.download_stream(codebase.id, "large") as stream:
        pieces = [piece async for piece in stream]
    assert len(pieces) > 1
    assert b"".join(pieces) == content
    with pytest.raises(FileNotFoundError) as raised:
        await client.download_stream(codebase.id, "nothing").__anext__()
    assert raised.value.code == "FILE_NOT_FOUND"


async def test_an_archive_goes_there_and_back(client: AsyncSandboxClient, codebase: Codebase) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        info = tarfile.TarInfo("docs/guide.md")
        info.size = 5
        tar.addfile(info, io.BytesIO(b"guide"))
    result = await client.upload_archive(codebase.id, archive.getvalue(), message="docs")
    assert (result.version, result.files_changed) == (codebase.version + 1, 1)
    assert (await client.get_version(codebase.id, result.version)).message == "docs"
    everything = b"".join([piece async for piece in client.download_archive(codebase.id, "docs")])
    with tarfile.open(fileobj=io.BytesIO(everything)) as tar:
        assert [member.name for member in tar if member.isfile()] == ["guide.md"]


async def test_files_are_moved_and_removed(client: AsyncSandboxClient, codebase: Codebase) -> None:
    await client.rename_file(codebase.id, "src/app.py", "src/main.py")
    with pytest.raises(CodebaseError) as raised:
        await client.delete_file(codebase.id, "src")
    assert raised.value.code == "FILE_WRONG_KIND"
    result = await client.delete_file(codebase.id, "src", recursive=True)
    assert result.version == codebase.version + 2
    assert [file.path for file in await client.list_files(codebase.id, recursive=True)] == ["README.md"]


async def test_a_version_can_be_looked_at_and_returned_to(client: AsyncSandboxClient, codebase: Codebase) -> None:
    first = codebase.version
    await client.upload_file(codebase.id, "README.md", "changed")
    newest, *older = await client.list_versions(codebase.id)
    assert (newest.version, newest.origin, newest.changes) == (first + 1, VersionOrigin.UPLOAD, ())
    assert [version.version for version in older] == list(range(first, 0, -1))
    changes = (await client.get_version(codebase.id, first + 1)).changes
    assert [(change.kind, change.path, change.size) for change in changes] == [("modified", "README.md", 7)]
    assert isinstance(changes[0], VersionChange)
    assert await client.download_file(codebase.id, "README.md", version=first) == b"# Project\n"
    back = await client.rollback(codebase.id, first)
    assert (back.version, back.origin) == (first + 2, VersionOrigin.ROLLBACK)
    assert await client.download_file(codebase.id, "README.md") == b"# Project\n"
    with pytest.raises(CodebaseError) as raised:
        await client.get_version(codebase.id, 1000)
    assert raised.value.code == "VERSION_NOT_FOUND"


async def test_a_batch_is_one_version_and_all_or_nothing(client: AsyncSandboxClient, codebase: Codebase) -> None:
    known = b"# Project\n"
    large = b"z" * 700_000
    entries = [
        ManifestEntry("copy.md", size=len(known), sha256=sha256(known)),
        BatchEntry("large", size=len(large), sha256=sha256(large), content=iter([large[:300_000], large[300_000:]])),
        ManifestEntry("empty", EntryKind.DIRECTORY),
        ManifestEntry("link", EntryKind.SYMLINK, target="large"),
        ManifestEntry("src/app.py", EntryKind.ABSENT),
    ]
    assert await client.compare_manifest(codebase.id, entries[:2]) == ["large"]
    sent: List[int] = []
    result = await client.batch_upload(codebase.id, entries, base_version=codebase.version, on_bytes=sent.append)
    assert result.version == codebase.version + 1
    assert (result.bytes_received, sum(sent)) == (len(large), len(large))
    assert await client.download_file(codebase.id, "copy.md") == known
    assert await client.download_file(codebase.id, "large") == large
    paths = [file.path for file in await client.list_files(codebase.id, recursive=True)]
    assert "src/app.py" not in paths
    with pytest.raises(VersionConflictError):
        await client.batch_upload(codebase.id, [], base_version=codebase.version)
    unknown = ManifestEntry("other", size=5, sha256=sha256(b"other"))
    with pytest.raises(UploadError) as raised:
        await client.batch_upload(codebase.id, [unknown])
    assert raised.value.code == "CONTENT_MISSING"
