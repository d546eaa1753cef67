# Generated from tests/async_face/test_sandbox_apply.py by scripts/generate_sync.py: change it there.
"""Changes of a sandbox on their way into the directory that it was made of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, List, Tuple

from agentfense import ApplyResult, Sandbox
from tests.server import Server


def place(top: Path, files: Dict[str, str]) -> Path:
    for path, content in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(content)
    return top


def on_disk(top: Path) -> Dict[str, str]:
    return {
        path.relative_to(top).as_posix(): path.read_text()
        for path in sorted(top.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def refused(result: ApplyResult) -> List[Tuple[str, bool]]:
    return [(outcome.change.path, outcome.conflict) for outcome in result.outcomes if not outcome.applied]


def test_apply_brings_everything_of_a_kind_into_the_local_directory(server: Server, tmp_path: Path) -> None:
    found = "a text to be found again\n"
    place(tmp_path, {"a.txt": "one\n", "gone/b.txt": "b\n", "old.txt": found, "x": "x"})
    with Sandbox.from_local(tmp_path, "full-access", endpoint=server.endpoint) as sandbox:
        sandbox.run(
            "echo two >> a.txt; rm -r gone; mv old.txt moved.txt; mkdir -p new/deep; echo n > new/deep/n.txt;"
            "chmod +x moved.txt; rm x; mkdir x; echo in > x/in; ln -s a.txt link",
            check=True,
        )
        before = on_disk(tmp_path)
        assert refused(sandbox.apply(dry_run=True)) == []
        assert on_disk(tmp_path) == before
        result = sandbox.apply()
        assert (result.version > 0, refused(result)) == (True, [])
        assert on_disk(tmp_path) == {"a.txt": "one\ntwo\n", "moved.txt": found, "new/deep/n.txt": "n\n", "x/in": "in\n"}
        assert sorted(os.listdir(tmp_path)) == ["a.txt", "link", "moved.txt", "new", "x"]
        assert os.readlink(tmp_path / "link") == "a.txt"
        assert (tmp_path / "moved.txt").stat().st_mode & 0o111 == 0o111
        assert sandbox.changes() == []
        sandbox.run("echo three >> a.txt; rm new/deep/n.txt; rmdir new/deep")
        assert refused(sandbox.apply()) == []
        assert on_disk(tmp_path) == {"a.txt": "one\ntwo\nthree\n", "moved.txt": found, "x/in": "in\n"}


def test_apply_of_some_paths_only_and_nothing_to_apply(server: Server, tmp_path: Path) -> None:
    place(tmp_path, {"a.txt": "one\n"})
    with Sandbox.from_local(tmp_path, "full-access", endpoint=server.endpoint) as sandbox:
        assert sandbox.apply() == ApplyResult(0, ())
        sandbox.run("echo two > a.txt; mkdir -p d/e; echo f > d/e/f; echo g > d/e/g")
        sandbox.apply(["d/e/f"])
        assert on_disk(tmp_path) == {"a.txt": "one\n", "d/e/f": "f\n"}


def test_what_changed_here_since_the_upload_is_left_alone_and_told(server: Server, tmp_path: Path) -> None:
    place(tmp_path, {"a.txt": "one\n", "b.txt": "one\n"})
    with Sandbox.from_local(tmp_path, "full-access", endpoint=server.endpoint) as sandbox:
        sandbox.run("echo two > a.txt; echo two > b.txt; echo theirs > c.txt")
        place(tmp_path, {"a.txt": "mine\n", "c.txt": "mine\n"})
        conflicts = [("/a.txt", True), ("/c.txt", True)]
        assert refused(sandbox.apply(dry_run=True)) == conflicts
        assert refused(sandbox.apply()) == conflicts
        assert on_disk(tmp_path) == {"a.txt": "mine\n", "b.txt": "two\n", "c.txt": "mine\n"}
        assert sandbox.client.download_file(sandbox.codebase_id, "a.txt") == b"two\n"


def test_nothing_is_written_through_a_link(server: Server, tmp_path: Path) -> None:
    outside = place(tmp_path / "outside", {"a.txt": "outside\n"})
    top = place(tmp_path / "top", {"d/a.txt": "inside\n", "e.txt": "inside\n"})
    with Sandbox.from_local(top, "full-access", endpoint=server.endpoint) as sandbox:
        sandbox.run("echo theirs > d/a.txt; echo theirs > d/new.txt; echo theirs > e.txt", check=True)
        (top / "d" / "a.txt").unlink()
        (top / "d").rmdir()
        (top / "d").symlink_to(outside)
        (top / "e.txt").unlink()
        (top / "e.txt").symlink_to(outside / "a.txt")
        result = sandbox.apply()
    assert refused(result) == [("/d/a.txt", True), ("/d/new.txt", True), ("/e.txt", True)]
    assert on_disk(outside) == {"a.txt": "outside\n"}


def test_sync_writes_to_the_codebase_only(server: Server, tmp_path: Path) -> None:
    place(tmp_path, {"a.txt": "one\n"})
    with Sandbox.from_local(tmp_path, "full-access", endpoint=server.endpoint) as sandbox:
        sandbox.run("echo two > a.txt")
        assert refused(sandbox.sync()) == []
        assert on_disk(tmp_path) == {"a.txt": "one\n"}
        assert sandbox.client.download_file(sandbox.codebase_id, "a.txt") == b"two\n"


def test_many_changed_directories_at_once(server: Server, tmp_path: Path) -> None:
    place(tmp_path, {f"d{index}/f.txt": f"{index}\n" for index in range(80)})
    with Sandbox.from_local(tmp_path, "full-access", endpoint=server.endpoint) as sandbox:
        sandbox.run("for f in d*/f.txt; do echo more >> $f; done")
        assert refused(sandbox.apply()) == []
    assert on_disk(tmp_path) == {f"d{index}/f.txt": f"{index}\nmore\n" for index in range(80)}
