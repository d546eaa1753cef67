# Generated from tests/async_face/test_client_uploads.py by scripts/generate_sync.py: change it there.
"""A local directory on its way into a codebase, against a real server."""

from __future__ import annotations

import os
from typing import List

import pytest

from agentfense import SandboxClient, UploadError, UploadProgress, VersionConflictError
from agentfense.types import Codebase
from tests.conftest import MakeProject


def test_only_what_the_server_lacks_is_sent(client: SandboxClient, codebase: Codebase, project: MakeProject) -> None:
    top = project(
        {
            "README.md": "# Project\n",
            "bin/tool": "#!/bin/sh\n",
            "large": b"x" * 1_000_000,
            "node_modules/left/out.js": "no",
            ".gitignore": "node_modules\n",
            "empty": "",
        }
    )
    os.chmod(top / "bin/tool", 0o755)
    os.symlink("bin/tool", top / "link")
    progress: List[UploadProgress] = []
    result = client.upload_directory(codebase.id, top, replace_all=True, on_progress=progress.append, message="m")
    # The README is there already, and what is empty needs no content.
    assert (result.files, result.files_sent) == (6, 3)
    assert result.bytes_sent == result.bytes_received == 1_000_000 + len("#!/bin/sh\n") + len("node_modules\n")
    assert result.version == codebase.version + 1
    last = {each.phase: each for each in progress}
    assert last["reading"].done_bytes == last["reading"].total_bytes == result.bytes
    assert last["uploading"].done_bytes == last["uploading"].total_bytes == result.bytes_sent
    files = {file.path: file for file in client.list_files(codebase.id, recursive=True)}
    assert sorted(files) == [".gitignore", "README.md", "bin", "bin/tool", "empty", "large", "link"]
    assert files["bin/tool"].mode & 0o777 == 0o755
    assert files["link"].target == "bin/tool"
    again = client.upload_directory(codebase.id, top, include_git=True, ignore_files=False, ignore=["large"])
    assert (again.files, again.files_sent) == (6, 1)


def test_what_goes_wrong_is_told(client: SandboxClient, codebase: Codebase, project: MakeProject) -> None:
    top = project({"a": "1"})
    with pytest.raises(VersionConflictError):
        client.upload_directory(codebase.id, top, base_version=codebase.version + 5)
    with pytest.raises(UploadError, match="cannot upload"):
        client.upload_directory(codebase.id, top / "nowhere")

    def fail(_: UploadProgress) -> None:
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        client.upload_directory(codebase.id, top, on_progress=fail)
    assert client.get_codebase(codebase.id).version == codebase.version


def test_how_the_server_ended_an_upload_is_told_also_while_it_is_being_sent(
    client: SandboxClient, codebase: Codebase, project: MakeProject
) -> None:
    top = project({f"{n}": "x" * 100_000 for n in range(40)})
    for _ in range(5):
        with pytest.raises(VersionConflictError):
            client.upload_directory(codebase.id, top, base_version=codebase.version + 5)
