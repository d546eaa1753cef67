"""What is asked of a codebase before changes are written."""

from __future__ import annotations

from datetime import datetime, timezone

from agentfense._local_copy import ListingStep, changed_paths, plan_listing, wanted_entries
from agentfense.types import EntryKind, FileInfo, ManifestEntry
from tests.unit.local_copy_scene import outcome


def test_the_paths_are_those_of_what_was_applied_old_ones_too() -> None:
    outcomes = [
        outcome("renamed", "/src/b", old_path="/a"),
        outcome("deleted", "/c"),
        outcome("added", "/d", applied=False),
    ]
    assert changed_paths(outcomes) == {"src/b", "a", "c"}


def test_the_directories_of_a_few_paths_are_listed_one_by_one() -> None:
    assert plan_listing({"src/deep/a", "src/deep/b", "c"}) == [ListingStep("", False), ListingStep("src/deep", False)]


def test_those_of_many_are_one_listing() -> None:
    assert len(plan_listing({f"d{at}/a" for at in range(32)})) == 32
    assert plan_listing({f"d{at}/a" for at in range(33)}) == [ListingStep("", True)]


def test_entries_are_those_that_were_asked_for() -> None:
    def info(path: str, kind: EntryKind, target: str = "", sha256: str = "") -> FileInfo:
        return FileInfo(path, path.rpartition("/")[2], kind, 3, 0o755, datetime.now(timezone.utc), target, sha256)

    infos = [
        info("src/a", EntryKind.FILE, sha256="ab"),
        info("src/other", EntryKind.FILE, sha256="cd"),
        info("link", EntryKind.SYMLINK, target="src"),
    ]
    assert wanted_entries(infos, {"src/a", "link", "gone"}) == {
        "src/a": ManifestEntry("src/a", EntryKind.FILE, 0o755, 3, "ab"),
        "link": ManifestEntry("link", EntryKind.SYMLINK, 0o755, 3, target="src"),
    }
