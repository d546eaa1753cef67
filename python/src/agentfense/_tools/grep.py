"""Searching with grep: its command line, and what it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator, List, Optional, Sequence

from agentfense._sandbox.workspace_path import names_in, workspace_path
from agentfense.types import ExecResult, FileInfo, Permission

_ROW = re.compile(r"(?:\./)?([^\0]+)\0([0-9]+):(.*)", re.DOTALL)
_OTHER_GREP = re.compile(r"\boption\b|\busage\b", re.IGNORECASE)
_LARGEST_READ_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Match:
    """A line in which the pattern was found."""

    #: Relative to the workspace.
    path: str
    #: From 1.
    line: int
    text: str


@dataclass(frozen=True)
class Findings:
    """What a search found."""

    matches: Sequence[Match]
    #: What else there is to know of them, as half a sentence.
    remark: Optional[str] = None


def grep_command(pattern: str, path: str) -> List[str]:
    """Looks for a POSIX extended regular expression.

    -r in all below, -n with line numbers, -H and names, -I not in binaries, -s without complaints of files, -Z a NUL
    after names.
    """
    place = "./" + "/".join(names_in(workspace_path(path)))
    return ["grep", "-rnHIsZ", "--extended-regexp", "--exclude-dir=.git", "-e", pattern, "--", place]


def knows_options(result: ExecResult) -> bool:
    """Whether this was a grep that knows them."""
    return result.exit_code != 127 and not (result.exit_code > 1 and _OTHER_GREP.search(result.stderr))


def matches_in(output: str) -> List[Match]:
    """The matches that grep printed."""
    rows = (_ROW.fullmatch(row) for row in output.split("\n"))
    return [Match(row.group(1), int(row.group(2)), row.group(3)) for row in rows if row is not None]


def is_worth_reading(entry: FileInfo) -> bool:
    """Whether to look into a file without grep."""
    is_readable = entry.is_file and entry.permission is not Permission.VIEW and entry.size <= _LARGEST_READ_BYTES
    return is_readable and ".git" not in names_in(entry.path)


def matches_of_plain_text(wanted: str, entry: FileInfo, content: bytes) -> Iterator[Match]:
    """The lines of a file that have the text in them; none of what is no text file."""
    if b"\0" in content:
        return
    path = "/".join(names_in(entry.path))
    for number, line in enumerate(content.decode("utf-8", "replace").split("\n"), start=1):
        if wanted in line:
            yield Match(path, number, line)
