"""Messages of the wire, and what they mean."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from agentfense._messages import words
from agentfense._messages.batch import batch_chunks, content_bytes
from agentfense._messages.command import command_event_of, command_text, exec_message, exec_result_of
from agentfense._messages.content import PIECE_BYTES, pieces
from agentfense._messages.manifest import MESSAGE_BYTES, in_messages
from agentfense._messages.network import network_number
from agentfense._messages.numbers import count, page_size_of, strings
from agentfense._messages.rules import rule_messages, rule_of
from agentfense._messages.time import duration_message, moment, timedelta_of, timestamp_message
from agentfense._messages.words import Words
from agentfense._wire.sandbox.v1 import codebase_pb2, common_pb2, sandbox_pb2, system_pb2
from agentfense.exceptions import InvalidConfigurationError, SandboxError
from agentfense.types import BatchEntry, EntryKind, ManifestEntry, PermissionRule, RuleLike, StderrEvent

TABLES: Dict[str, Any] = {
    "PERMISSIONS": common_pb2.Permission,
    "PATTERN_TYPES": common_pb2.PatternType,
    "SANDBOX_STATUSES": common_pb2.SandboxStatus,
    "SESSION_STATUSES": common_pb2.SessionStatus,
    "RUNTIMES": sandbox_pb2.RuntimeType,
    "NETWORKS": sandbox_pb2.NetworkMode,
    "SYNC_MODES": sandbox_pb2.SyncMode,
    "VERSION_ORIGINS": codebase_pb2.VersionOrigin,
    "CHANGE_KINDS": codebase_pb2.ChangeKind,
    "MANIFEST_KINDS": codebase_pb2.EntryKind,
    "ROLES": system_pb2.Role,
}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_number_of_the_contract_has_a_word(name: str) -> None:
    table: Words[Any, Any] = getattr(words, name)
    for number in TABLES[name].values():
        if number == 0:
            assert table.number(None) == 0
        else:
            word = table.word(number)
            assert table.number(word) == table.number(word.value) == number
    with pytest.raises(SandboxError, match="does not know: 99"):
        table.word(99)
    with pytest.raises(InvalidConfigurationError, match="must be one of"):
        table.number("nonsense")


def test_a_count_is_whole_and_not_below_zero() -> None:
    assert [count(None, "n"), count(0, "n"), count(5, "n")] == [0, 0, 5]
    nonsense: List[Any] = [-1, 1.5, True, "1", 2**63]
    for value in nonsense:
        with pytest.raises(InvalidConfigurationError, match="n must be a whole number"):
            count(value, "n")
    with pytest.raises(InvalidConfigurationError, match="page_size must be a whole number above 0"):
        page_size_of(0)
    assert page_size_of(2**40) == 2**31 - 1


def test_texts_are_texts() -> None:
    assert strings(None, "env") == {}
    wrong: Dict[Any, Any] = {"PORT": 80}
    with pytest.raises(InvalidConfigurationError, match=r"env\['PORT'\] must be a string, not 80"):
        strings(wrong, "env")


def test_times_are_seconds_or_timedeltas_rounded_up_to_milliseconds() -> None:
    assert duration_message(None, "t") is None
    assert duration_message(1.5, "t") == Duration(seconds=1, nanos=500_000_000)
    assert duration_message(timedelta(minutes=2), "t") == Duration(seconds=120)
    assert duration_message(0.0001, "t") == Duration(nanos=1_000_000)
    assert timedelta_of(Duration(seconds=2, nanos=3_000_000)) == timedelta(seconds=2, milliseconds=3)
    nonsense: List[Any] = [0, -1, float("inf"), float("nan"), timedelta(0), "5", True]
    for value in nonsense:
        with pytest.raises(InvalidConfigurationError, match="t must be a number of seconds above 0"):
            duration_message(value, "t")


def test_moments_are_aware_and_in_utc() -> None:
    assert moment(Timestamp()) == datetime(1970, 1, 1, tzinfo=timezone.utc)
    east = datetime(2024, 5, 1, 14, 0, tzinfo=timezone(timedelta(hours=2)))
    assert moment(timestamp_message(east)) == datetime(2024, 5, 1, 12, 0, tzinfo=timezone.utc)


def test_rules_keep_what_they_are() -> None:
    rules: List[RuleLike] = [
        PermissionRule("/a/**"),
        {"pattern": "/b", "permission": "none", "type": "file", "priority": 7},
    ]
    messages = rule_messages(None, rules)
    assert [rule_of(message) for message in messages] == [
        PermissionRule("/a/**"),
        PermissionRule("/b", "none", "file", 7),  # type: ignore[arg-type]
    ]
    assert rule_messages(None, []) == []
    assert rule_messages(None, None) == rule_messages("agent-safe", None)
    with pytest.raises(InvalidConfigurationError, match="rule 1"):
        rule_messages("full-access", [rules[0], {"pattern": "/b", "permission": "all"}])


def test_a_command_is_a_line_or_a_program() -> None:
    line = exec_message("sb_1", "echo $HOME", "in", {"A": "b"}, "src", 1)
    assert (line.command, line.stdin, dict(line.env), line.workdir, line.timeout.seconds) == (
        "echo $HOME",
        "in",
        {"A": "b"},
        "src",
        1,
    )
    program = exec_message("sb_1", ("echo", "a b"), b"\xff")
    assert (list(program.argv), program.stdin_bytes, program.command) == (["echo", "a b"], b"\xff", "")
    assert not program.HasField("timeout")
    assert command_text(("echo", "a b")) == "echo 'a b'"
    for nonsense in ([], ["a", 1]):
        with pytest.raises(InvalidConfigurationError):
            exec_message("sb_1", nonsense)  # type: ignore[arg-type]


@pytest.mark.parametrize("command", [None, 5, {"0": "true"}, b"true", ["true", 5]])
def test_what_is_no_command_is_refused(command: Any) -> None:
    with pytest.raises(InvalidConfigurationError, match="a command is a string, or a list of strings"):
        exec_message("sb_1", command)


@pytest.mark.parametrize("network", [{"allow": ["pypi.org"]}, ["pypi.org"]])
def test_hosts_that_are_no_network_list_are_refused_with_what_they_should_be(network: Any) -> None:
    with pytest.raises(InvalidConfigurationError, match=r"a NetworkList, as in NetworkList\(\['pypi.org'\]\)"):
        network_number(network)
    with pytest.raises(InvalidConfigurationError, match=r"must be one of none, .*, not 5"):
        network_number(5)  # type: ignore[arg-type]


def test_exact_bytes_travel_only_where_the_text_is_not_all_of_it() -> None:
    result = exec_result_of(sandbox_pb2.ExecResult(stdout="é", stderr="�", stderr_bytes=b"\xff", signal="SIGKILL"), "x")
    assert (result.stdout_bytes, result.stderr_bytes, result.signal) == ("é".encode(), b"\xff", "SIGKILL")
    err = sandbox_pb2.ExecOutput(type=sandbox_pb2.ExecOutput.OUTPUT_TYPE_STDERR, data=b"e")
    assert command_event_of(err) == StderrEvent(b"e")


def test_content_is_cut_into_pieces() -> None:
    data = b"x" * (2 * PIECE_BYTES + 1)
    assert [len(piece) for piece in pieces(data)] == [PIECE_BYTES, PIECE_BYTES, 1]
    assert list(pieces("é")) == ["é".encode()]
    assert list(pieces(b"")) == []


def test_a_manifest_is_cut_into_messages() -> None:
    entries = [ManifestEntry(f"{number:05}" * 100) for number in range(1000)]
    groups = list(in_messages(entries))
    assert len(groups) > 1
    assert [entry for group in groups for entry in group] == entries
    assert list(in_messages([])) == []


def test_a_batch_begins_goes_on_and_says_its_end() -> None:
    large = b"z" * (3 * PIECE_BYTES)
    entries = [
        BatchEntry("small", size=1, content=b"s"),
        BatchEntry("large", size=len(large), content=iter([large[:10], large[10:]])),
        ManifestEntry("dir", EntryKind.DIRECTORY, mode=0o700),
    ]
    chunks = list(batch_chunks(codebase_pb2.BatchUploadChunk.Begin(codebase_id="cb_1"), entries))
    assert chunks[0].begin.announces_end
    assert [chunk.end for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert sum(map(content_bytes, chunks)) == len(large) + 1
    assert all(chunk.ByteSize() < 2 * MESSAGE_BYTES for chunk in chunks)
    items = [item for chunk in chunks for item in chunk.items]
    assert [item.entry.path for item in items if item.HasField("entry")] == ["small", "large", "dir"]
    assert b"".join(item.data for item in items[1:-1]) == large
