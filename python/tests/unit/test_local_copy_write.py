"""A directory takes back what a sandbox made of it, and nothing else is touched."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Optional

import pytest

from tests.unit.local_copy_scene import Scene, brief, outcome

HAS = "; the codebase has the change"
CHANGED = f"it changed here since the upload{HAS}"

HOSTILE = (
    *("/../outside", "/a/../../outside", "//outside", "/a//b", "/.", "/a/./b", "/", "/a\0b", "../outside"),
    "/\ud800",
)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


class TestWhatASandboxDidComesBack:
    def test_files_that_are_new_changed_deleted_and_renamed(self, scene: Scene) -> None:
        scene.upload({"a.txt": "one", "b.txt": "bbb", "old.txt": "moved", "keep": "kept"})
        outcomes = [
            outcome("modified", "/a.txt"),
            outcome("deleted", "/b.txt"),
            outcome("added", "/dir", type="directory"),
            outcome("renamed", "/dir/moved.txt", old_path="/old.txt"),
            outcome("added", "/new.txt"),
        ]
        now = {"a.txt": "two", "new.txt": "new content", "dir/moved.txt": "moved", "keep": "kept", "dir": "/"}
        assert scene.write(outcomes, now) == outcomes
        assert scene.on_disk() == {
            "a.txt": "two",
            "dir": "/",
            "dir/moved.txt": "moved",
            "keep": "kept",
            "new.txt": "new content",
        }

    def test_an_empty_file_and_a_large_one(self, scene: Scene) -> None:
        scene.upload({"empty": "not"})
        large = "0123456789" * 100_000
        outcomes = [outcome("modified", "/empty"), outcome("added", "/large")]
        assert scene.write(outcomes, {"empty": "", "large": large}) == outcomes
        assert scene.on_disk() == {"empty": "", "large": large}

    def test_what_was_not_applied_to_the_codebase_is_not_touched_and_told_as_it_was(self, scene: Scene) -> None:
        scene.upload({"a.txt": "one"})
        outcomes = [outcome("modified", "/a.txt", applied=False)]
        assert scene.write(outcomes, {"a.txt": "two"}) == outcomes
        assert scene.on_disk() == {"a.txt": "one"}

    def test_links_as_links(self, scene: Scene) -> None:
        scene.upload({"a.txt": "one", "b.txt": "two", "link": "-> a.txt"})
        outcomes = [
            outcome("modified", "/b.txt", type="symlink"),
            outcome("modified", "/link", type="symlink"),
            outcome("added", "/out", type="symlink"),
        ]
        now = {"a.txt": "one", "link": "-> b.txt", "b.txt": "-> a.txt", "out": "-> /etc/passwd"}
        assert scene.write(outcomes, now) == outcomes
        assert scene.on_disk() == now

    def test_permission_bits_of_files_whose_content_stayed_too_and_never_more_than_those(self, scene: Scene) -> None:
        scene.upload({"run.sh": "#!", "new.sh": "old"})
        outcomes = [outcome("modified", path) for path in ("/made.sh", "/new.sh", "/run.sh")]
        now = {"run.sh": "#!", "new.sh": "new", "made.sh": "made"}
        modes = {"run.sh": 0o4755, "new.sh": 0o6711, "made.sh": 0o600}
        assert scene.write(outcomes, now, modes=modes) == outcomes
        assert [scene.mode(path) for path in modes] == [0o755, 0o711, 0o600]

    def test_a_directory_that_ends_up_unwritable_with_what_is_in_it(self, scene: Scene) -> None:
        scene.upload({})
        outcomes = [
            outcome("added", "/shut", type="directory"),
            outcome("added", "/shut/inner", type="directory"),
            outcome("added", "/shut/inner/a.txt"),
        ]
        now = {"shut": "/", "shut/inner": "/", "shut/inner/a.txt": "in"}
        modes = {"shut": 0o555, "shut/inner": 0o500, "shut/inner/a.txt": 0o444}
        assert scene.write(outcomes, now, modes=modes) == outcomes
        assert [scene.mode(path) for path in modes] == [0o555, 0o500, 0o444]
        for path in ("shut", "shut/inner"):
            (scene.top / path).chmod(0o755)

    def test_the_mode_of_a_directory_that_stayed(self, scene: Scene) -> None:
        scene.upload({"dir": "/"})
        outcomes = [outcome("modified", "/dir", type="directory")]
        assert scene.write(outcomes, {"dir": "/"}, modes={"dir": 0o711}) == outcomes
        assert scene.mode("dir") == 0o711

    def test_in_whatever_order_the_server_tells_it(self, scene: Scene) -> None:
        scene.upload({"dir": "/", "dir/sub": "/", "dir/sub/a.txt": "a", "x.txt": "x"})
        outcomes = [
            outcome("deleted", "/dir", type="directory"),
            outcome("added", "/new/deep/file.txt"),
            outcome("deleted", "/dir/sub", type="directory"),
            outcome("deleted", "/dir/sub/a.txt"),
            outcome("added", "/new/deep", type="directory"),
            outcome("added", "/new", type="directory"),
        ]
        now = {"new": "/", "new/deep": "/", "new/deep/file.txt": "f", "x.txt": "x"}
        assert scene.write(outcomes, now) == outcomes
        assert scene.on_disk() == now

    def test_a_second_time_over_what_was_written_the_first_time(self, scene: Scene) -> None:
        scene.upload({"a.txt": "one"})
        scene.write([outcome("modified", "/a.txt"), outcome("added", "/b")], {"a.txt": "two", "b": "b"})
        outcomes = [outcome("modified", "/a.txt"), outcome("deleted", "/b")]
        assert scene.write(outcomes, {"a.txt": "three"}) == outcomes
        assert scene.on_disk() == {"a.txt": "three"}

    def test_directories_on_the_way_that_are_missing_are_made(self, scene: Scene) -> None:
        scene.upload({"src": "/", "src/a.py": "a"})
        shutil.rmtree(scene.top / "src")
        outcomes = [outcome("added", "/src/deep/er/b.py"), outcome("added", "/src/deep/er/c.py")]
        assert scene.write(outcomes, {"src/deep/er/b.py": "b", "src/deep/er/c.py": "c"}) == outcomes
        assert scene.on_disk()["src/deep/er/b.py"] + scene.on_disk()["src/deep/er/c.py"] == "bc"


class TestWhatBecameSomethingElse:
    def test_a_file_is_a_directory_now(self, scene: Scene) -> None:
        scene.upload({"thing": "file"})
        outcomes = [outcome("modified", "/thing", type="directory"), outcome("added", "/thing/in.txt")]
        now = {"thing": "/", "thing/in.txt": "in"}
        assert scene.write(outcomes, now) == outcomes
        assert scene.on_disk() == now

    def test_a_directory_is_a_file_now_once_all_that_was_in_it_is_gone(self, scene: Scene) -> None:
        scene.upload({"thing": "/", "thing/a": "a", "thing/b": "b"})
        outcomes = [outcome("deleted", "/thing/a"), outcome("deleted", "/thing/b"), outcome("modified", "/thing")]
        assert scene.write(outcomes, {"thing": "file"}) == outcomes
        assert scene.on_disk() == {"thing": "file"}

    def test_a_directory_with_somebodys_file_in_it_does_not_become_a_file(self, scene: Scene) -> None:
        scene.upload({"thing": "/", "thing/a": "a"})
        (scene.top / "thing/mine").write_text("mine")
        written = scene.write([outcome("deleted", "/thing/a"), outcome("modified", "/thing")], {"thing": "file"})
        reason = f"a directory is here that holds what the sandbox did not delete, or did not see{HAS}"
        assert brief(written) == [("/thing/a", True, False, ""), ("/thing", False, True, reason)]
        assert scene.on_disk() == {"thing": "/", "thing/mine": "mine"}

    def test_a_link_to_a_directory_becomes_one_and_what_it_led_to_stays(self, scene: Scene) -> None:
        scene.upload({"real": "/", "real/a": "a", "alias": "-> real"})
        outcomes = [outcome("modified", "/alias", type="directory"), outcome("added", "/alias/b")]
        now = {"real": "/", "real/a": "a", "alias": "/", "alias/b": "b"}
        assert scene.write(outcomes, now) == outcomes
        assert scene.on_disk() == now


class TestWorkOfOthersIsLeftAlone:
    def test_a_file_that_changed_since_the_upload(self, scene: Scene) -> None:
        scene.upload({"a.txt": "one", "b.txt": "one", "c.txt": "one"})
        for name in ("a.txt", "b.txt"):
            (scene.top / name).write_text("mine")
        outcomes = [outcome("modified", "/a.txt"), outcome("modified", "/c.txt"), outcome("deleted", "/b.txt")]
        assert brief(scene.write(outcomes, {"a.txt": "two", "c.txt": "two"})) == [
            ("/a.txt", False, True, CHANGED),
            ("/c.txt", True, False, ""),
            ("/b.txt", False, True, CHANGED),
        ]
        assert scene.on_disk() == {"a.txt": "mine", "b.txt": "mine", "c.txt": "two"}

    def test_a_file_that_was_removed_here_is_not_brought_back(self, scene: Scene) -> None:
        scene.upload({"a.txt": "one", "b.txt": "one"})
        for name in ("a.txt", "b.txt"):
            (scene.top / name).unlink()
        outcomes = [outcome("modified", "/a.txt"), outcome("deleted", "/b.txt")]
        assert brief(scene.write(outcomes, {"a.txt": "two"})) == [
            ("/a.txt", False, True, f"it was removed here since the upload{HAS}"),
            ("/b.txt", True, False, ""),
        ]
        assert scene.on_disk() == {}

    def test_a_file_that_was_not_uploaded_unless_both_have_written_the_same(self, scene: Scene) -> None:
        scene.upload({})
        (scene.top / "mine.txt").write_text("mine")
        (scene.top / "same.txt").write_text("same")
        outcomes = [outcome("added", "/mine.txt"), outcome("added", "/same.txt")]
        assert brief(scene.write(outcomes, {"mine.txt": "theirs", "same.txt": "same"})) == [
            ("/mine.txt", False, True, f"it is here and was not uploaded{HAS}"),
            ("/same.txt", True, False, ""),
        ]
        assert scene.on_disk() == {"mine.txt": "mine", "same.txt": "same"}

    def test_nothing_goes_into_a_directory_that_was_not_uploaded(self, scene: Scene) -> None:
        scene.upload({})
        (scene.top / "node_modules").mkdir()
        outcomes = [outcome("added", "/node_modules", type="directory"), outcome("added", "/node_modules/x.js")]
        assert brief(scene.write(outcomes, {"node_modules": "/", "node_modules/x.js": "x"})) == [
            ("/node_modules", False, True, f"it is here and was not uploaded{HAS}"),
            ("/node_modules/x.js", False, True, f"the directory node_modules is here and was not uploaded{HAS}"),
        ]
        assert scene.on_disk() == {"node_modules": "/"}

    def test_a_directory_that_still_holds_something_is_not_deleted(self, scene: Scene) -> None:
        scene.upload({"dir": "/", "dir/a": "a", "dir/b": "b"})
        (scene.top / "dir/b").write_text("mine")
        outcomes = [
            outcome("deleted", "/dir/a"),
            outcome("deleted", "/dir/b"),
            outcome("deleted", "/dir", type="directory"),
        ]
        assert brief(scene.write(outcomes, {})) == [
            ("/dir/a", True, False, ""),
            ("/dir/b", False, True, CHANGED),
            ("/dir", False, True, f"the directory holds what the sandbox did not delete, or did not see{HAS}"),
        ]
        assert scene.on_disk() == {"dir": "/", "dir/b": "mine"}

    def test_what_became_something_else_here_is_no_longer_what_was_uploaded(self, scene: Scene) -> None:
        scene.upload({"a": "one", "b": "one", "c": "one"})
        (scene.scratch / "elsewhere").write_text("one")
        for name in ("a", "b", "c"):
            (scene.top / name).unlink()
        os.symlink("../elsewhere", scene.top / "a")
        (scene.top / "b").mkdir()
        os.mkfifo(scene.top / "c")
        outcomes = [outcome("modified", "/a"), outcome("deleted", "/b"), outcome("modified", "/c")]
        written = scene.write(outcomes, {"a": "two", "c": "two"})
        assert brief(written) == [(path, False, True, CHANGED) for path in ("/a", "/b", "/c")]
        assert (scene.scratch / "elsewhere").read_text() == "one"
        assert stat.S_ISFIFO((scene.top / "c").stat().st_mode)

    @pytest.mark.parametrize("change", ["other content", "same content", "gone", "a link", "other mode"])
    def test_a_file_that_is_changed_while_its_new_content_arrives(self, scene: Scene, change: str) -> None:
        scene.upload({"a.txt": "one"})
        place = scene.top / "a.txt"

        def change_it() -> None:
            if change == "other mode":
                place.chmod(0o640)
                return
            place.unlink()
            if change == "a link":
                os.symlink("b", place)
            elif change != "gone":
                place.write_text("mine" if change == "other content" else "one")

        written = scene.write([outcome("modified", "/a.txt")], {"a.txt": "two"}, meanwhile=change_it)
        assert brief(written) == [("/a.txt", False, True, f"it changed here meanwhile{HAS}")]
        expected = {"other content": "mine", "a link": "-> b", "gone": None}
        assert scene.on_disk().get("a.txt") == expected.get(change, "one")
        assert set(scene.on_disk()) <= {"a.txt"}

    def test_a_file_that_appears_while_content_arrives(self, scene: Scene) -> None:
        scene.upload({})
        written = scene.write(
            [outcome("added", "/a")], {"a": "two"}, meanwhile=lambda: (scene.top / "a").write_text("mine")
        )
        assert brief(written) == [("/a", False, True, f"it changed here meanwhile{HAS}")]
        assert scene.on_disk() == {"a": "mine"}


class TestNothingOutsideIsInReach:
    @pytest.mark.parametrize(
        "path",
        [
            "/../outside",
            "/a/../../outside",
            "//outside",
            "/a//b",
            "/.",
            "/a/./b",
            "/",
            "/a\0b",
            "../outside",
            "/\ud800",
        ],
    )
    def test_a_hostile_path_is_refused(self, scene: Scene, path: str) -> None:
        (scene.scratch / "outside").write_text("untouched")
        scene.upload({})
        name = path[1:] if path.startswith("/") else path
        (written,) = scene.write([outcome("added", path)], {name: "evil"})
        assert (written.applied, written.reason) == (False, f"it is no path of this directory{HAS}")
        assert sorted(os.listdir(scene.scratch)) == ["outside", "project"]
        assert (scene.scratch / "outside").read_text() == "untouched"
        assert scene.on_disk() == {}

    @pytest.mark.parametrize("path", ["/../outside", "/a/../../outside"])
    def test_nor_is_anything_deleted_there(self, scene: Scene, path: str) -> None:
        (scene.scratch / "outside").write_text("untouched")
        scene.upload({"a": "/"})
        (written,) = scene.write([outcome("deleted", path)], {})
        assert not written.applied
        assert (scene.scratch / "outside").exists()

    def test_a_link_at_any_place_of_the_way_ends_it(self, scene: Scene) -> None:
        (scene.scratch / "outside/deep").mkdir(parents=True)
        (scene.scratch / "outside/deep/a.txt").write_text("one")
        (scene.scratch / "outside/b.txt").write_text("one")
        scene.upload({"src": "/", "src/deep": "/", "src/deep/a.txt": "one", "src/b.txt": "one"})
        shutil.rmtree(scene.top / "src")
        os.symlink("../outside", scene.top / "src")
        outcomes = [
            outcome("modified", "/src/deep/a.txt"),
            outcome("added", "/src/deep/new.txt"),
            outcome("deleted", "/src/b.txt"),
        ]
        written = scene.write(outcomes, {"src/deep/a.txt": "two", "src/deep/new.txt": "new"})
        reason = f"src is not a directory here{HAS}"
        assert brief(written) == [(each.change.path, False, True, reason) for each in outcomes]
        assert os.listdir(scene.scratch / "outside/deep") == ["a.txt"]
        assert (scene.scratch / "outside/deep/a.txt").read_text() == "one"
        assert (scene.scratch / "outside/b.txt").exists()

    def test_a_link_that_the_sandbox_made_is_not_gone_through_afterwards(self, scene: Scene) -> None:
        (scene.scratch / "outside").mkdir()
        scene.upload({})
        scene.write([outcome("added", "/way", type="symlink")], {"way": "-> ../outside"})
        written = scene.write([outcome("added", "/way/evil")], {"way/evil": "evil"})
        assert brief(written) == [("/way/evil", False, True, f"way is not a directory here{HAS}")]
        assert os.listdir(scene.scratch / "outside") == []

    @pytest.mark.parametrize("now", ["two", None], ids=["written", "made new"])
    def test_a_directory_that_becomes_a_link_while_content_arrives(self, scene: Scene, now: Optional[str]) -> None:
        (scene.scratch / "outside").mkdir()
        (scene.scratch / "outside/a.txt").write_text("one")
        scene.upload({"src": "/", "src/a.txt": "one"})

        def swap() -> None:
            (scene.top / "src").rename(scene.scratch / "moved")
            os.symlink("../outside", scene.top / "src")

        path = "src/new.txt" if now is None else "src/a.txt"
        (written,) = scene.write([outcome("modified", f"/{path}")], {path: "two"}, meanwhile=swap)
        assert (written.applied, written.reason) == (False, f"it changed here meanwhile{HAS}")
        assert os.listdir(scene.scratch / "outside") == ["a.txt"]
        assert (scene.scratch / "outside/a.txt").read_text() == "one"
        # Nor is anything left in the directory that was moved away.
        assert os.listdir(scene.scratch / "moved") == ["a.txt"]
        assert (scene.scratch / "moved/a.txt").read_text() == "one"

    @pytest.mark.parametrize("path", [".git/hooks/pre-commit", "sub/.GIT/config", ".git"])
    def test_what_belongs_to_git_is_not_written_unless_it_was_uploaded(self, scene: Scene, path: str) -> None:
        scene.upload({"sub": "/"})
        (written,) = scene.write([outcome("added", f"/{path}")], {path: "evil"})
        assert (written.applied, written.reason) == (False, f"what belongs to Git is not written from a sandbox{HAS}")
        assert scene.on_disk() == {"sub": "/"}

    def test_a_repository_that_was_uploaded_is_written(self, scene: Scene) -> None:
        scene.upload({".git": "/", ".git/HEAD": "one"})
        outcomes = [outcome("modified", "/.git/HEAD")]
        assert scene.write(outcomes, {".git/HEAD": "two"}) == outcomes

    def test_content_that_is_not_what_was_announced_is_not_installed_and_leaves_nothing_behind(
        self, scene: Scene
    ) -> None:
        scene.upload({"a.txt": "one"})
        (written,) = scene.write([outcome("modified", "/a.txt")], {"a.txt": "two"}, sent={"a.txt": "half of tw"})
        reason = f"it could not be written here: what arrived is not what the codebase has{HAS}"
        assert brief([written]) == [("/a.txt", False, False, reason)]
        assert scene.on_disk() == {"a.txt": "one"}

    def test_one_that_cannot_be_fetched_does_not_stop_the_others(self, scene: Scene) -> None:
        scene.upload({"a.txt": "one", "b.txt": "one"})
        outcomes = [outcome("modified", "/a.txt"), outcome("modified", "/b.txt")]
        written = scene.write(outcomes, {"a.txt": "two", "b.txt": "two"}, failing={"a.txt": "the line is dead"})
        assert brief(written) == [
            ("/a.txt", False, False, f"it could not be written here: the line is dead{HAS}"),
            ("/b.txt", True, False, ""),
        ]
        assert scene.on_disk() == {"a.txt": "one", "b.txt": "two"}

    def test_a_directory_that_is_gone_altogether(self, scene: Scene) -> None:
        scene.upload({"a": "one"})
        shutil.rmtree(scene.top)
        (written,) = scene.write([outcome("modified", "/a")], {"a": "two"})
        reason = f"it could not be written here: No such file or directory{HAS}"
        assert brief([written]) == [("/a", False, False, reason)]


class TestAnEndBeforeTheEnd:
    def test_closing_leaves_no_directory_half_made_and_no_temporary_file(self, scene: Scene) -> None:
        copy = scene.upload({})
        outcomes = [outcome("added", "/dir", type="directory"), outcome("added", "/dir/a.txt")]
        entries = scene.entries({"dir": "/", "dir/a.txt": "a"})
        with copy.write(outcomes, entries) as writing:
            content = writing.next_content()
            assert content is not None
            assert content.path == "dir/a.txt"
            content.write(b"h")
            assert len(os.listdir(scene.top / "dir")) == 1
        assert scene.on_disk() == {"dir": "/"}
        assert scene.mode("dir") == 0o755
        with pytest.raises(ValueError, match="closed file"):
            content.write(b"alf")
        assert writing.next_content() is None

    def test_closing_twice_and_before_the_start(self, scene: Scene) -> None:
        writing = scene.upload({}).write([outcome("added", "/a")], scene.entries({"a": "a"}))
        writing.close()
        writing.close()
        assert (writing.next_content(), scene.on_disk()) == (None, {})

    def test_no_descriptor_is_left_open(self, scene: Scene) -> None:
        copy = scene.upload({"d": "/", "d/a": "one", "d/b": "one"})
        before = len(os.listdir("/proc/self/fd"))
        outcomes = [outcome("modified", "/d/a"), outcome("modified", "/d/b"), outcome("added", "/e/f")]
        now = {"d/a": "two", "d/b": "two", "e/f": "f"}
        scene.write(outcomes[:1], now)
        with copy.write(outcomes[1:], scene.entries(now)) as writing:
            writing.next_content()
        assert len(os.listdir("/proc/self/fd")) == before


class TestAServerThatContradictsItself:
    def test_what_is_missing_by_mistake_is_not_deleted_and_what_is_there_by_mistake_not_written(
        self, scene: Scene
    ) -> None:
        scene.upload({"a.txt": "one", "b.txt": "one"})
        outcomes = [outcome("modified", "/a.txt"), outcome("deleted", "/b.txt")]
        assert brief(scene.write(outcomes, {"b.txt": "two"})) == [
            ("/a.txt", False, False, "the codebase is not as the server told"),
            ("/b.txt", False, False, "the codebase is not as the server told"),
        ]
        assert scene.on_disk() == {"a.txt": "one", "b.txt": "one"}

    def test_a_file_moved_away_from_a_path_that_has_another_one_now(self, scene: Scene) -> None:
        scene.upload({"a.txt": "one"})
        outcomes = [outcome("modified", "/a.txt"), outcome("renamed", "/b.txt", old_path="/a.txt")]
        now = {"a.txt": "two", "b.txt": "one"}
        assert scene.write(outcomes, now) == outcomes
        assert scene.on_disk() == now


def test_a_rehearsal_tells_what_would_be_left_alone_and_touches_nothing(scene: Scene) -> None:
    copy = scene.upload(
        {"a.txt": "one", "b.txt": "one", "dir": "/", "dir/a": "a", "thing": "file", "full": "/", "full/x": "x"}
    )
    (scene.top / "b.txt").write_text("mine")
    (scene.top / "full/mine").write_text("mine")
    before = scene.on_disk()
    outcomes = [
        outcome("modified", "/a.txt"),
        outcome("modified", "/b.txt"),
        outcome("deleted", "/dir/a"),
        outcome("deleted", "/dir", type="directory"),
        outcome("modified", "/thing", type="directory"),
        outcome("added", "/thing/deep", type="directory"),
        outcome("added", "/thing/deep/in.txt"),
        outcome("deleted", "/full/x"),
        outcome("deleted", "/full", type="directory"),
        outcome("added", "/new/way/file"),
        outcome("added", "/../outside"),
    ]
    told = brief(copy.rehearse(outcomes))
    assert [each for each in told if not each[1]] == [
        ("/b.txt", False, True, "it changed here since the upload"),
        ("/full", False, True, "the directory holds what the sandbox did not delete, or did not see"),
        ("/../outside", False, False, "it is no path of this directory"),
    ]
    assert scene.on_disk() == before
    # What was only rehearsed is not taken for done.
    assert brief(scene.write([outcome("modified", "/a.txt")], {"a.txt": "two"})) == [("/a.txt", True, False, "")]
