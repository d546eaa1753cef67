"""The words and records of the SDK."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from datetime import datetime, timezone
from enum import Enum
from typing import List

import pytest

from agentfense import types
from agentfense.exceptions import CommandExecutionError, CommandTimeoutError
from agentfense.types import (
    CommandEnd,
    CommandEvent,
    EntryKind,
    ExecResult,
    ExitEvent,
    FileInfo,
    Permission,
    PermissionRule,
    ResourceLimits,
    StderrEvent,
    StdoutEvent,
    UploadResult,
)

WORDS = [each for each in vars(types).values() if isinstance(each, type) and issubclass(each, Enum) and len(each) > 0]


@pytest.mark.parametrize("words", WORDS)
def test_a_word_is_as_good_as_its_string(words: type[Enum]) -> None:
    for word in words:
        assert str(word) == f"{word}" == word.value == word
        assert words(word.value) is word


def test_a_rule_says_read_unless_it_says_otherwise() -> None:
    rule = PermissionRule("/docs/**")
    assert (rule.permission, rule.type, rule.priority) == (Permission.READ, None, 0)
    assert PermissionRule("/a", "write") == PermissionRule("/a", Permission.WRITE)  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        rule.priority = 5  # type: ignore[misc]


def test_no_limit_is_given_by_default() -> None:
    assert {getattr(ResourceLimits(), field.name) for field in fields(ResourceLimits)} == {None}


@pytest.mark.parametrize(
    ("stdout", "stderr", "output"), [("a\n", "b\n", "a\n\nb\n"), ("a\n", "", "a\n"), ("", "b\n", "b\n"), ("", "", "")]
)
def test_output_is_both_streams(stdout: str, stderr: str, output: str) -> None:
    assert ExecResult(exit_code=0, stdout=stdout, stderr=stderr).output == output


def test_a_result_raises_what_was_no_success() -> None:
    fine = ExecResult(exit_code=0, command="true")
    assert fine.success
    assert fine.raise_on_error() is fine
    failed = ExecResult(exit_code=2, command="make")
    assert not failed.success
    with pytest.raises(CommandExecutionError, match="ended with exit code 2: make") as raised:
        failed.raise_on_error()
    assert raised.value.result is failed
    late = ExecResult(exit_code=0, timed_out=True, command="make")
    assert not late.success
    with pytest.raises(CommandTimeoutError, match="ran out of time: make"):
        late.raise_on_error()


def test_events_know_their_kind() -> None:
    events: List[CommandEvent] = [StdoutEvent(b"a\xff"), StderrEvent(b"b"), ExitEvent(CommandEnd(exit_code=3))]
    assert [event.kind for event in events] == ["stdout", "stderr", "exit"]
    assert StdoutEvent(b"a\xff").text == "a�"
    assert ExitEvent(CommandEnd(exit_code=3)).exit_code == 3
    assert StdoutEvent(b"a") != StderrEvent(b"a")


def test_a_file_knows_what_it_is() -> None:
    time = datetime(2024, 1, 1, tzinfo=timezone.utc)
    kinds = [EntryKind.FILE, EntryKind.DIRECTORY, EntryKind.SYMLINK]
    files = [FileInfo(path="a", name="a", kind=kind, size=1, mode=0o644, modified_at=time) for kind in kinds]
    assert [(file.is_file, file.is_dir, file.is_symlink) for file in files] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


def test_an_upload_has_the_names_that_it_had() -> None:
    result = UploadResult(path="a", size=1, sha256="ab", version=2)
    assert (result.file_path, result.checksum) == ("a", "ab")
