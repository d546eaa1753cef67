"""Secrets of a request, and the values that are read for them."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any, Dict

import pytest

from agentfense import InvalidConfigurationError
from agentfense._messages.secrets import secret_messages

VALUE = "a value of a secret"


def test_a_value_is_said_or_a_variable_or_a_file_or_what_a_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "value"
    file.write_bytes(f"{VALUE}\r\n".encode())
    monkeypatch.setenv("MINE", VALUE)
    sources: Any = [{"value": VALUE}, {"from_env": "MINE"}, {"file": str(file)}, {"command": "printenv MINE"}]
    for source in sources:
        secret: Any = {**source, "hosts": ["a.test"], "in": "query key"}
        (message,) = secret_messages({"KEY": secret})
        assert (message.name, message.value, list(message.hosts), message.place) == (
            "KEY",
            VALUE,
            ["a.test"],
            "query key",
        )


def test_what_the_server_keeps_is_named_alone() -> None:
    assert secret_messages(None) == []
    for kept in (["KEY"], {"KEY": "kept"}):
        (message,) = secret_messages(kept)  # type: ignore[arg-type]
        assert (message.name, message.HasField("value"), list(message.hosts)) == ("KEY", False, [])


RIGHT: Dict[str, Any] = {"value": VALUE, "hosts": ["a.test"], "in": "bearer"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (VALUE, 'the secret KEY is a dict with a value and hosts, or "kept"'),
        (
            {**RIGHT, "host": "a.test"},
            "the secret KEY has host, which means nothing: value, from_env, file, command, hosts, in do",
        ),
        ({**RIGHT, "file": "x"}, "the secret KEY has one of value, from_env, file and command, as a text"),
        (
            {"hosts": ["a.test"], "in": "bearer"},
            "the secret KEY has one of value, from_env, file and command, as a text",
        ),
        ({**RIGHT, "value": 1}, "the secret KEY has one of value, from_env, file and command, as a text"),
        ({**RIGHT, "hosts": "a.test"}, "the secret KEY needs hosts that it may be sent to: a list of names"),
        (
            {**RIGHT, "in": None},
            'the secret KEY needs in: "header NAME", "bearer", "basic", "query KEY" or "body"',
        ),
        (
            {**RIGHT, "value": None, "from_env": "AGENTFENSE_TEST_NOT_SET"},
            "the secret KEY has no value: the variable AGENTFENSE_TEST_NOT_SET is not set here",
        ),
        (
            {**RIGHT, "value": None, "file": "/nowhere"},
            "the secret KEY cannot be read from /nowhere: No such file or directory",
        ),
        (
            {**RIGHT, "value": None, "command": f"printf %s '{VALUE}'; exit 3"},
            "the command that prints the secret KEY failed",
        ),
    ],
)
def test_what_is_none_is_refused_and_nothing_of_a_value_is_in_the_reason(wrong: Any, message: str) -> None:
    with pytest.raises(InvalidConfigurationError) as refused:
        secret_messages({"KEY": wrong})
    assert str(refused.value).splitlines()[0] == message
    told = "".join(traceback.TracebackException.from_exception(refused.value).format_exception_only())
    assert VALUE not in told


def test_a_text_is_no_list_of_names() -> None:
    with pytest.raises(InvalidConfigurationError, match=r"^secrets are a dict, or a list of the names"):
        secret_messages("KEY")
