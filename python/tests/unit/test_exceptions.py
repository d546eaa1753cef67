"""The exceptions, and the registry of the server that they come from."""

from __future__ import annotations

import builtins
import pickle
import re
from typing import Dict, Type

import pytest

from agentfense import exceptions
from agentfense.exceptions import ERROR_CLASSES, RETRYABLE_CODES, CommandExecutionError, SandboxError, UploadError
from agentfense.types import ExecResult
from tests.server import REPOSITORY

ROW = re.compile(r"^\| `(?P<code>[A-Z_]+)` \| [^|]+ \| [^|]+ \| (?P<retry>[^|]*)\| `(?P<name>\w+)` \|", re.MULTILINE)
ROWS = [row.groupdict() for row in ROW.finditer((REPOSITORY / "docs" / "errors.md").read_text("utf-8"))]
CLASSES: Dict[str, Type[SandboxError]] = {
    name: value
    for name, value in vars(exceptions).items()
    if isinstance(value, type) and issubclass(value, SandboxError)
}


def test_every_code_of_the_registry_has_the_class_of_the_typescript_sdk() -> None:
    assert len(ROWS) > 30
    assert {row["code"]: row["name"] for row in ROWS} == {code: each.__name__ for code, each in ERROR_CLASSES.items()}
    assert {row["code"] for row in ROWS if row["retry"].strip() == "yes"} == RETRYABLE_CODES


def test_the_tree_is_that_of_the_typescript_sdk() -> None:
    source = (REPOSITORY / "packages" / "sdk" / "src" / "errors.ts").read_text("utf-8")
    theirs = dict(re.findall(r"export class (\w+) extends (\w+)", source))
    ours = {name: each.__mro__[1].__name__.replace("Exception", "Error") for name, each in CLASSES.items()}
    assert ours == theirs


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("ConnectionError", builtins.ConnectionError),
        ("FileNotFoundError", builtins.FileNotFoundError),
        ("PermissionDeniedError", PermissionError),
        ("CommandTimeoutError", TimeoutError),
        ("InvalidConfigurationError", ValueError),
    ],
)
def test_an_error_is_also_the_builtin_that_it_resembles(name: str, builtin: Type[BaseException]) -> None:
    with pytest.raises(builtin) as raised:
        raise CLASSES[name]("it went wrong", code="CODE", hint="do something", details={"path": "/a"})
    error = raised.value
    assert isinstance(error, SandboxError)
    assert (str(error), error.code, error.details) == ("it went wrong (do something)", "CODE", {"path": "/a"})


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_an_error_says_what_it_was_given_and_travels_between_processes(name: str) -> None:
    error = CLASSES[name]("message", code="CODE", retryable=True, hint="hint", details={"a": "b"}, grpc_code="INTERNAL")
    again = pickle.loads(pickle.dumps(error))
    for each in (error, again):
        assert type(each) is CLASSES[name]
        assert (str(each), each.message, each.code, each.retryable) == ("message (hint)", "message", "CODE", True)
        assert (each.hint, each.details, each.grpc_code) == ("hint", {"a": "b"}, "INTERNAL")


def test_an_error_of_a_command_has_what_it_printed() -> None:
    result = ExecResult(exit_code=3, command="make", stdout="out", stderr="err")
    error = CommandExecutionError("failed", result=result)
    assert (error.code, error.result, error.command) == ("COMMAND_FAILED", result, "make")
    assert (error.exit_code, error.stdout, error.stderr) == (3, "out", "err")
    assert CommandExecutionError("failed").result.exit_code == 137


def test_an_error_of_an_upload_has_what_could_not_be_read() -> None:
    error = UploadError("no", unreadable=["a", "b"])
    assert (error.code, error.unreadable) == ("UPLOAD_FAILED", ("a", "b"))
