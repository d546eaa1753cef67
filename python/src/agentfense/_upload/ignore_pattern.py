"""One line of an ignore file, read as git reads it (`dir.c` there): on bytes.

A pattern is asked about each directory and file by itself, on the way down, so that it never has to know what is below
what it matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Iterator

from agentfense._upload.wildmatch import literal_length, wild_matcher

#: Of a path relative to the file's directory, and of its last name.
_Matcher = Callable[[bytes, bytes], bool]


@dataclass(frozen=True)
class IgnorePattern:
    """What one line says."""

    #: It brings back what others ignore.
    negated: bool
    only_directories: bool
    matches: _Matcher


def read_patterns(text: bytes) -> Iterator[IgnorePattern]:
    """The patterns of an ignore file, in its order."""
    text = text[3:] if text.startswith(b"\xef\xbb\xbf") else text
    for line in text.split(b"\n"):
        pattern = _without_trailing_spaces(line[:-1] if line.endswith(b"\r") else line)
        if pattern != b"" and not pattern.startswith(b"#"):
            # What is behind a NUL, C does not see.
            yield _read_pattern(pattern.split(b"\0")[0])


def _read_pattern(line: bytes) -> IgnorePattern:
    negated = line.startswith(b"!")
    pattern = line[1:] if negated else line
    only_directories = pattern.endswith(b"/")
    pattern = pattern[:-1] if only_directories else pattern
    matches = _path_matcher(pattern) if b"/" in pattern else _name_matcher(pattern)
    return IgnorePattern(negated, only_directories, matches)


def _without_trailing_spaces(line: bytes) -> bytes:
    """One behind a backslash stays, and so does every other white space."""
    end = at = 0
    while at < len(line):
        is_space = line[at : at + 1] == b" "
        at += 2 if line[at : at + 1] == b"\\" else 1
        end = end if is_space else at
    return line[:end]


def _name_matcher(pattern: bytes) -> _Matcher:
    """Without a slash, a pattern is about names at any depth. Its two common forms are compared as they are."""
    if literal_length(pattern) == len(pattern):
        return lambda _path, name: name == pattern
    ending = pattern[1:]
    if pattern.startswith(b"*") and literal_length(ending) == len(ending):
        return lambda _path, name: name.endswith(ending)
    is_match = wild_matcher(pattern)
    return lambda _path, name: is_match(name)


def _path_matcher(pattern: bytes) -> _Matcher:
    """With a slash, it is about paths from the directory of its file."""
    pattern = pattern[1:] if pattern.startswith(b"/") else pattern
    # git cuts the literal start off, too: a `**` right behind it then counts as the start of a segment.
    start = pattern[: literal_length(pattern)]
    if start == pattern:
        return lambda path, _name: path == pattern
    is_match = wild_matcher(pattern[len(start) :])
    return lambda path, _name: path.startswith(start) and is_match(path[len(start) :])
