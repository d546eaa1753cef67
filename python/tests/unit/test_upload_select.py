"""What a directory has for a codebase."""

from __future__ import annotations

import hashlib
import os
import resource
import socket
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from agentfense import _directory
from agentfense._directory import Directory
from agentfense._upload import Entry, read_content, select_entries
from agentfense.exceptions import UploadError
from agentfense.types import EntryKind, UploadProgress
from tests.unit.upload_tree import make_tree, paths_of


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_files_with_modes_and_hashes_empty_directories_and_links_as_links(tmp_path: Path) -> None:
    make_tree(
        tmp_path,
        {"src/a.sh": "echo", "empty/": "", "link": "-> src", "broken": "-> nowhere", "up": "-> /etc", "none": ""},
    )
    for path, mode in (("src/a.sh", 0o4755), ("src", 0o750), ("empty", 0o755), ("none", 0o600)):
        (tmp_path / path).chmod(mode)
    selection = select_entries(tmp_path)
    assert selection.entries == [
        Entry("broken", EntryKind.SYMLINK, target="nowhere"),
        Entry("empty", EntryKind.DIRECTORY, 0o755),
        Entry("link", EntryKind.SYMLINK, target="src"),
        Entry("none", EntryKind.FILE, 0o600, sha256=sha256("")),
        Entry("src", EntryKind.DIRECTORY, 0o750),
        Entry("src/a.sh", EntryKind.FILE, 0o755, size=4, sha256=sha256("echo")),
        Entry("up", EntryKind.SYMLINK, target="/etc"),
    ]
    assert (selection.bytes, selection.left_out) == (4, [])


def test_the_order_is_that_of_bytes_and_a_directory_comes_before_what_is_in_it(tmp_path: Path) -> None:
    make_tree(
        tmp_path, {"é": "", "z": "", "Z": "", "a/b/c": "", "a-b": "", "a.b/c": "", "\U0001f600": "", "\uff5e": ""}
    )
    expected = ["Z", "a/", "a/b/", "a/b/c", "a-b", "a.b/", "a.b/c", "z", "é", "\uff5e", "\U0001f600"]
    found = paths_of(select_entries(tmp_path).entries)
    assert sorted(found) == sorted(expected)
    assert [path for path in found if "/" not in path.rstrip("/")] == [
        *("Z", "a/", "a-b", "a.b/", "z", "é", "\uff5e", "\U0001f600")
    ]
    assert found.index("a/") + 1 == found.index("a/b/") == found.index("a/b/c") - 1


def test_a_path_through_a_link_leads_to_the_directory_itself(tmp_path: Path) -> None:
    make_tree(tmp_path, {"real/a": "one", "way": "-> real"})
    (entry,) = select_entries(tmp_path / "way").entries
    assert (entry.path, entry.top) == ("a", os.path.realpath(tmp_path / "real"))
    assert b"".join(read_content(entry)) == b"one"


def test_a_tree_deeper_than_there_are_descriptors(tmp_path: Path) -> None:
    make_tree(tmp_path, {"d/" * 150 + "a": "one"})
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 50, limits[1]))
    try:
        entries = select_entries(tmp_path).entries
        assert b"".join(read_content(entries[-1])) == b"one"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert paths_of(entries) == [*("d/" * depth for depth in range(1, 151)), "d/" * 150 + "a"]


def test_what_no_codebase_can_hold_is_left_out_and_named(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a": "1"})
    os.mkfifo(tmp_path / "pipe")
    with open(os.fsencode(tmp_path) + b"/bad\xff", "wb"):
        pass
    os.symlink(b"to\xff", os.fsencode(tmp_path / "away"))
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        # The name of a socket has to be short.
        os.chdir(tmp_path)
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        selection = select_entries(tmp_path)
    assert paths_of(selection.entries) == ["a"]
    assert selection.left_out == [
        "away: its target is not UTF-8",
        "bad\ufffd: its name is not UTF-8",
        "pipe: is neither a file, a directory nor a link",
        "socket: is neither a file, a directory nor a link",
    ]


def test_one_that_is_not_there_or_is_a_file_is_an_error(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a": "one"})
    with pytest.raises(UploadError, match=r"cannot upload .*none: No such file"):
        select_entries(tmp_path / "none")
    with pytest.raises(UploadError, match="it is not a directory"):
        select_entries(tmp_path / "a")


def test_it_says_how_far_it_is(tmp_path: Path) -> None:
    make_tree(tmp_path, {"src/a": "one", "b": "two", "empty": ""})
    seen: List[UploadProgress] = []
    threads = set()

    def on_progress(progress: UploadProgress) -> None:
        seen.append(progress)
        threads.add(threading.current_thread())

    select_entries(tmp_path, on_progress=on_progress)
    assert seen == [UploadProgress("reading", 3, 6, 3), UploadProgress("reading", 6, 6, 3)]
    assert threads == {threading.current_thread()}


def test_what_the_listener_raises_ends_the_work(tmp_path: Path) -> None:
    make_tree(tmp_path, {f"d{at % 7}/{at}": "x" * 10 for at in range(1000)})

    class Enough(Exception):
        pass

    def on_progress(progress: UploadProgress) -> None:
        raise Enough

    with pytest.raises(Enough):
        select_entries(tmp_path, on_progress=on_progress)
    assert [each.name for each in threading.enumerate() if each.name.startswith("agentfense-hash")] == []


@contextmanager
def as_nobody() -> Iterator[None]:
    """Nothing is closed to root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_cannot_be_read_is_named_or_left_out(tmp_path: Path) -> None:
    top = make_tree(tmp_path / "top", {"open": "1", "secret": "2", "closed/": ""})
    # pytest makes its directories for one user.
    for place in (top, *list(top.parents)[:3]):
        place.chmod(0o755)
    (top / "secret").chmod(0)
    (top / "closed").chmod(0)
    with as_nobody():
        with pytest.raises(UploadError) as refused:
            select_entries(top)
        selection = select_entries(top, skip_unreadable=True)
    (top / "closed").chmod(0o700)
    assert refused.value.message == "these cannot be read: closed, secret"
    assert (refused.value.unreadable, refused.value.hint) == (
        ("closed", "secret"),
        "leave them out with skip_unreadable",
    )
    assert paths_of(selection.entries) == ["closed/", "open"]
    assert selection.left_out == ["closed: cannot be read", "secret: cannot be read"]


SMALL = "one"
LARGE = "x" * 600_000


@pytest.mark.parametrize("text", [SMALL, LARGE])
def test_content_comes_in_pieces(tmp_path: Path, text: str) -> None:
    make_tree(tmp_path, {"d/a": text})
    entry = select_entries(tmp_path).entries[-1]
    pieces = list(read_content(entry))
    assert (b"".join(pieces), max(map(len, pieces)) <= 262_144) == (text.encode(), True)


@pytest.mark.parametrize("text", [SMALL, LARGE])
@pytest.mark.parametrize("change", ["other content", "longer", "shorter", "gone", "a link", "a pipe", "a directory"])
def test_a_file_that_changed_after_it_was_hashed_is_an_error(tmp_path: Path, text: str, change: str) -> None:
    make_tree(tmp_path, {"outside/secret": text, "top/a": text})
    (entry,) = select_entries(tmp_path / "top").entries
    place = tmp_path / "top/a"
    place.unlink()
    if change == "a link":
        os.symlink("../outside/secret", place)
    elif change == "a pipe":
        os.mkfifo(place)
    elif change == "a directory":
        place.mkdir()
    elif change != "gone":
        texts = {"other content": text[:-1] + "!", "longer": text + "!", "shorter": text[:-1]}
        place.write_text(texts[change])
    with pytest.raises(UploadError, match=r"^a changed while it was being read; try again$") as raised:
        list(read_content(entry))
    assert (raised.value.code, raised.value.retryable, raised.value.details) == ("UPLOAD_FAILED", True, {"path": "a"})


def test_of_a_small_file_that_changed_nothing_is_given_at_all(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a": "one"})
    (entry,) = select_entries(tmp_path).entries
    (tmp_path / "a").write_text("two")
    with pytest.raises(UploadError):
        next(read_content(entry))


def test_no_link_that_took_the_place_of_a_directory_is_followed_for_content(tmp_path: Path) -> None:
    make_tree(tmp_path, {"outside/a": "one", "top/d/a": "one"})
    entry = select_entries(tmp_path / "top").entries[-1]
    (tmp_path / "top/d").rename(tmp_path / "moved")
    os.symlink("../outside", tmp_path / "top/d")
    with pytest.raises(UploadError, match="d/a changed while it was being read"):
        list(read_content(entry))


def swap_after(monkeypatch: pytest.MonkeyPatch, method: str, name: str, swap: Callable[[], None]) -> None:
    """Does something as soon as the walk has looked at a name, or has listed the directory that has it."""
    look = getattr(Directory, method)
    left = [swap]

    def looking(directory: Directory, *arguments: str) -> Any:
        found = look(directory, *arguments)
        if left and (name in arguments or (method == "names" and name.encode() in found)):
            left.pop()()
        return found

    monkeypatch.setattr(Directory, method, looking)


@pytest.mark.parametrize(("method", "name"), [("status", "e"), ("names", "a")], ids=["before it is listed", "after"])
def test_no_link_that_takes_the_place_of_a_directory_meanwhile_leads_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, name: str
) -> None:
    make_tree(tmp_path, {"outside/a": "secret", "top/d/e/a": "one", "top/z": "2"})

    def swap() -> None:
        (tmp_path / "top/d/e").rename(tmp_path / "moved")
        os.symlink("../../outside", tmp_path / "top/d/e")

    swap_after(monkeypatch, method, name, swap)
    with pytest.raises(UploadError, match=r"d/e.* changed while it was being read"):
        select_entries(tmp_path / "top")


def test_a_file_that_becomes_a_link_before_it_is_hashed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path, {"secret": "secret", "top/a": "one"})

    def swap() -> None:
        (tmp_path / "top/a").unlink()
        os.symlink("../secret", tmp_path / "top/a")

    swap_after(monkeypatch, "status", "a", swap)
    with pytest.raises(UploadError, match="a changed while it was being read"):
        select_entries(tmp_path / "top")


def test_where_directories_cannot_be_held_open_the_selection_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path, {".gitignore": "*.o\n", "d/e/a": "one", "d/b.o": "", "link": "-> d", "empty/": ""})
    held = select_entries(tmp_path)
    monkeypatch.setattr(_directory, "_CAN_HOLD", False)
    by_path = select_entries(tmp_path)
    assert by_path == held
    assert [b"".join(read_content(each)) for each in by_path.entries if each.path == "d/e/a"] == [b"one"]
    with Directory.open(str(tmp_path)) as top, pytest.raises(NotADirectoryError):
        top.below(["link", "e"])


def test_a_directory_that_vanishes_meanwhile_is_as_good_as_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path, {"d/": "", "z": "2"})
    swap_after(monkeypatch, "names", "d", (tmp_path / "d").rmdir)
    assert paths_of(select_entries(tmp_path).entries) == ["z"]


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    make_tree(tmp_path, {f"d{at % 5}/{at}": LARGE if at == 3 else "x" for at in range(50)})
    before = len(os.listdir("/proc/self/fd"))
    entries = select_entries(tmp_path).entries
    for entry in entries:
        if entry.kind is EntryKind.FILE:
            unread = read_content(entry)
            next(unread)
            del unread
    assert len(os.listdir("/proc/self/fd")) == before
