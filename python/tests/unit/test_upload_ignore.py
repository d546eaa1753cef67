"""What is ignored: the same as git does."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Dict, Mapping, Sequence, Set, Tuple, Union

import pytest

from agentfense._upload import select_entries
from agentfense._upload.wildmatch import wild_matcher
from tests.unit.upload_tree import make_tree, paths_of

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="there is no git here to compare with")

#: What the rules are tried on, besides their own files.
FILES = (
    *("a", "a b", "a.o", "b", "b ", "c.log", "!x", "#x", "\\x", "[x]", "é", "Makefile", "a\tb", "x-y", "x]y"),
    *("build/a", "build/a.o", "build/sub/a", "d/a", "d/b/a", "d/b/c/a", "d/b/c/a.o", "d/keep/a", "d/é/a", "dd/a"),
    *("src/build/a", "src/lib/a.log", "src/lib/deep/a.log", "src/lib/deep/er/b", "d1/a", "d2/a", "dx/a", "foobar/a"),
    *("foo/bar", "foo/x/bar", "fooX/bar", "foobar/b"),
)

SEEDS = range(40)

#: What `.gitignore` says at the top; a dict has more than one file.
CASES: Mapping[str, Union[str, Mapping[str, str]]] = {
    "nothing": "",
    "a name": "a\n",
    "a name without a line end": "a",
    "a name at the top": "/a\n",
    "a name of a directory": "build/\n",
    "a directory at the top": "/build/\n",
    "a name that is no directory": "a/\n",
    "a path": "d/b\n",
    "a path with a slash in front": "/d/b/a\n",
    "a path that is not at the top": "lib/deep\n",
    "an ending": "*.o\n",
    "an ending at the top": "/*.o\n",
    "an ending in a directory": "build/*.o\n",
    "everything": "*\n",
    "everything but one": "*\n!a\n",
    "everything but directories": "*\n!*/\n",
    "everything but a kind of file": "*\n!*/\n!*.o\n",
    "everything in a directory but one": "d/*\n!d/keep\n",
    "not out of an ignored directory": "d/\n!d/keep/a\n",
    "not out of an ignored directory, though itself brought back": "d\n!d/b\n!d/b/a\n",
    "brought back and ignored again": "*.o\n!a.o\n/a.o\n",
    "the last of two that differ": "!a\na\n",
    "the other order": "a\n!a\n",
    "a directory brought back as one": "d*\n!d1/\n",
    "stars at the start": "**/a\n",
    "stars at the start of a path": "**/deep/a.log\n",
    "stars at the end": "d/**\n",
    "stars at the end, one brought back": "d/**\n!d/b/\n",
    "stars in the middle": "d/**/a\n",
    "stars in the middle of nothing": "d/**/b\n",
    "stars twice": "**/b/**/a\n",
    "stars beside one another": "d/**/**/a\n",
    "more stars than two": "d/***/a\n",
    "stars only": "**\n",
    "stars of a directory": "**/\n",
    "stars and a slash in front": "/**/a\n",
    "stars in a name": "foo**bar\n",
    "stars behind a name": "foo**/bar\n",
    "stars before a name": "src/**lib\n",
    "stars in a path": "src/l**/a.log\n",
    "a star in a path": "src/*/a.log\n",
    "a star does not cross slashes": "src/*.log\n",
    "a star for a segment": "d/*/a\n",
    "many stars in a name": "*a*.*o*\n",
    "many stars in a path": "d/*/*/*.*\n",
    "a question": "d?\n",
    "a question in a path": "d?/a\n",
    "a question is no slash": "d?b\n",
    "a question is one byte": "?\n",
    "two questions": "??\n",
    "a class": "d[12]\n",
    "a class with a range": "d[0-9]/a\n",
    "a class that is not": "d[!12]\n",
    "a class that is not, otherwise": "d[^1x]/\n",
    "a class with a bracket": "x[]-]y\n",
    "a class with a dash at the end": "x[a-]y\n",
    "a class with a backslash": "[\\\\]x\n",
    "a class with an escaped bracket": "x[\\]]y\n",
    "a class that has a name": "d[[:digit:]]\n",
    "a class that has two": "[[:upper:][:digit:]]akefile\n",
    "a class whose name nobody knows": "d[[:number:]]\n",
    "a class that is not closed": "d[12\n",
    "a class that has no slash": "d[/]a\n",
    "a class backwards": "d[2-1]\n",
    "a class of bytes": "[\udcc3][\udca9]\n",
    "a class not of ASCII": "d/[!a]*/a\n",
    "an escaped letter": "\\a\n",
    "an escaped star": "\\*\n",
    "an escaped bracket": "\\[x]\n",
    "an escaped backslash": "\\\\x\n",
    "a backslash at the end": "a\\\n",
    "an escaped hash": "\\#x\n",
    "a hash": "#x\n",
    "a hash behind a space": " #x\n",
    "an escaped mark": "\\!x\n",
    "a mark for a mark": "*x\n!!x\n",
    "spaces at the end": "a   \n",
    "an escaped space at the end": "b\\ \n",
    "an escaped space and more": "b\\   \n",
    "a space inside": "a b\n",
    "a space in front": " a\n",
    "spaces only": "   \n",
    "a tab at the end": "a\t\n",
    "a tab inside": "a\tb\n",
    "lines that end as on Windows": "a\r\n*.o\r\nbuild/\r\n",
    "a line end as on Windows behind spaces": "a  \r\n",
    "a byte order mark": "\ufeffa\n",
    "slashes only": "/\n//\n",
    "a mark only": "!\n",
    "two slashes in front": "//a\n",
    "two slashes at the end": "build//\n",
    "a dot": "./a\n",
    "case": "A\nMAKEFILE\n",
    "beyond ASCII": "é\n",
    "beyond ASCII, by a star": "d/*\n!d/é\n",
    "not UTF-8": "\udcff\na\n",
    "a NUL": "a\0b\n",
    "a file below": {"d/.gitignore": "a\n"},
    "a file below, anchored": {"d/.gitignore": "/a\n"},
    "a file below, with a path": {"d/.gitignore": "b/c\n"},
    "a file below that brings back": {".gitignore": "*.o\na\n", "d/.gitignore": "!a\n!a.o\n"},
    "a file below that brings back a directory": {".gitignore": "b\n", "d/.gitignore": "!b/\n"},
    "a file below an ignored directory": {".gitignore": "d/\n", "d/.gitignore": "!*\n"},
    "a file below that ignores itself": {"d/.gitignore": "*\n"},
    "a file below that ignores all but itself": {"d/.gitignore": "*\n!.gitignore\n"},
    "a file below a file below": {"d/.gitignore": "b/*\n", "d/b/.gitignore": "!c\na\n", "d/b/c/.gitignore": "!a\n"},
    "a file below with stars": {"src/.gitignore": "**/deep/**\n!**/er/\n", "src/lib/.gitignore": "*.log\n"},
    "files in files of other directories": {"d/.gitignore": "/a\n", "dd/.gitignore": "!a\n", ".gitignore": "dd/a\n"},
    "a directory brought back below its own rules": {".gitignore": "/*\n!/src/\n/src/*\n!/src/lib/\n"},
    "a directory where a file should be": {".gitignore/": "", "d/.gitignore": "a\n"},
    "a link where a file should be": {".gitignore": "-> rules", "rules": "a\n"},
}


PIECES = ("a", "b", "d", "o", "*", "**", "?", "/", ".", "[ab]", "[!a]", "\\", "!", " ", "é", "**/", "/**")


def random_rules(seed: int) -> Dict[str, str]:
    """Rules that nobody would write."""
    chance = random.Random(seed)

    def line() -> str:
        return chance.choice(["", "", "!"]) + "".join(chance.choices(PIECES, k=chance.randint(1, 5))) + "\n"

    return {path: "".join(line() for _ in range(chance.randint(1, 4))) for path in (".gitignore", "d/.gitignore")}


class Repository:
    """All cases as directories of one repository: git is asked once."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self._found: Set[str] = set()

    def fill(self, trees: Mapping[str, Mapping[str, str]]) -> None:
        """Each case with the same files, and its own rules."""
        for name, rules in trees.items():
            make_tree(self.top / name, {**{path: path for path in FILES}, **rules})

    def ask_git(self) -> None:
        quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        assert GIT is not None
        subprocess.run([GIT, "init", "-q", str(self.top)], check=True, env=quiet, stderr=subprocess.DEVNULL)
        listing = [GIT, "-C", str(self.top), "ls-files", "-z", "--others", "--exclude-standard"]
        found = subprocess.run(listing, check=True, env=quiet, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._found = set(found.stdout.decode().split("\0")[:-1])

    def git_paths(self, name: str) -> Sequence[str]:
        """The files of a case that git would add."""
        return sorted(path[len(name) + 1 :] for path in self._found if path.startswith(f"{name}/"))

    def our_paths(self, name: str) -> Sequence[str]:
        """The files of a case that would be uploaded."""
        entries = select_entries(self.top / name).entries
        return sorted(entry.path for entry in entries if entry.kind != "directory")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("repository"))
    made.fill({name: {".gitignore": rules} if isinstance(rules, str) else rules for name, rules in CASES.items()})
    made.fill({f"random {seed}": random_rules(seed) for seed in SEEDS})
    made.ask_git()
    return made


@needs_git
@pytest.mark.parametrize("name", CASES)
def test_the_files_that_git_would_add_are_selected(repository: Repository, name: str) -> None:
    assert repository.our_paths(name) == repository.git_paths(name)


@needs_git
def test_the_same_for_rules_that_nobody_would_write(repository: Repository) -> None:
    names = {f"random {seed}": random_rules(seed) for seed in SEEDS}
    different = {
        name: rules for name, rules in names.items() if repository.our_paths(name) != repository.git_paths(name)
    }
    assert different == {}


def test_a_file_of_our_own_wins_over_gits_beside_it(tmp_path: Path) -> None:
    make_tree(
        tmp_path,
        {
            ".gitignore": "dist/\n",
            ".agentfenseignore": "!dist/\nsecret.txt\n",
            "dist/app.js": "",
            "secret.txt": "",
        },
    )
    paths = paths_of(select_entries(tmp_path).entries)
    assert paths == [".agentfenseignore", ".gitignore", "dist/", "dist/app.js"]


def test_patterns_of_the_caller_have_the_last_word_at_any_depth(tmp_path: Path) -> None:
    make_tree(
        tmp_path,
        {
            ".gitignore": "*.log\n",
            "a.log": "",
            "sub/.gitignore": "!secret\n",
            "sub/secret": "",
            "sub/b": "",
            "node_modules/x": "",
        },
    )
    selection = select_entries(tmp_path, ignore=["secret", "node_modules/", "!a.log"])
    assert paths_of(selection.entries) == [".gitignore", "a.log", "sub/", "sub/.gitignore", "sub/b"]


def test_without_the_ignore_files_everything_is_taken(tmp_path: Path) -> None:
    make_tree(tmp_path, {".gitignore": "*\n", "a": ""})
    assert paths_of(select_entries(tmp_path, ignore_files=False).entries) == [".gitignore", "a"]


def test_the_repository_is_left_out_at_any_depth_unless_asked_for(tmp_path: Path) -> None:
    make_tree(tmp_path, {".git/config": "x", "sub/.git": "gitdir: y", "sub/a": "1", ".github/b": "2"})
    assert paths_of(select_entries(tmp_path).entries) == [".github/", ".github/b", "sub/", "sub/a"]
    assert ".git/config" in paths_of(select_entries(tmp_path, include_git=True).entries)


def test_an_ignore_file_that_is_a_pipe_does_not_make_us_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    assert select_entries(tmp_path).left_out == [".gitignore: is neither a file, a directory nor a link"]


WALKED: Sequence[Tuple[bytes, bytes, bool]] = [
    (b"*a*a*a*a", b"aaaa", True),
    (b"*a*a*a*a", b"aaa", False),
    (b"**/a/**/b/**/c", b"a/b/c", True),
    (b"**/a/**/b/**/c", b"x/a/y/z/b/c", True),
    (b"**/a/**/b/**/c", b"xa/b/c", False),
    (b"**/a/**/b/**/c", b"a/xb/c", False),
    (b"*/*/*/**", b"a/b/c/d/e", True),
    (b"*/*/*/**", b"a/b", False),
    (b"*?*[a-c]*", b"xb", True),
]


@pytest.mark.parametrize(("pattern", "text", "expected"), WALKED)
def test_many_wildcards_are_matched_without_an_expression(pattern: bytes, text: bytes, expected: bool) -> None:
    assert wild_matcher(pattern)(text) is expected


def test_no_pattern_takes_for_ever() -> None:
    started = time.monotonic()
    assert wild_matcher(b"*a" * 30 + b"b")(b"a" * 250) is False
    assert wild_matcher(b"**/a/" * 30 + b"b")(b"a/" * 500 + b"a") is False
    assert wild_matcher(b"**/" * 20_000 + b"x")(b"a/b/" * 20) is False
    assert wild_matcher(b"[" + b"[:" * 200_000)(b"a") is False
    # An expression would not be through in a year.
    assert time.monotonic() - started < 60
