"""The cases of the contract are read strictly, and what is not as they expect is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Dict

import pytest

from agentfense import ExecResult, PresetError, SandboxStatus
from tests.contract.case import load_cases, parse_case
from tests.contract.matching import mismatch
from tests.contract.words import arguments

RESULT = ExecResult(exit_code=3, stdout="out\n", duration=timedelta(seconds=2))


def test_all_files_are_found_and_read() -> None:
    topics = {case.topic for case in load_cases()}
    assert topics == {"changes", "commands", "files", "lifecycle", "rules", "sessions"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (RESULT, {"exitCode": 3, "stdout": {"contains": "ou"}, "durationMs": {"atLeast": 2000}, "timedOut": False}),
        (RESULT, {"stdout": {"matches": "^o.t$"}, "syncProblems": []}),
        (SandboxStatus.RUNNING, "running"),
        (b"ab", {"bytes": "6162"}),
        ([1, 2, 3], {"includes": [1, 3]}),
        ({"exit_code": 1}, {"exit_code": 1}),
        (PresetError("no such preset"), {"name": "InvalidConfigurationError", "message": "no such preset"}),
    ],
)
def test_a_value_meets_an_expectation(value: object, expected: object) -> None:
    assert mismatch(value, expected) is None


@pytest.mark.parametrize(
    ("value", "expected", "problem"),
    [
        (RESULT, {"exitCode": 0}, "result.exitCode is 3, not 0"),
        (RESULT, {"durationMs": {"atLeast": 2001}}, "result.durationMs is 2000.0, not atLeast 2001"),
        (RESULT, {"stdout": {"matches": "^t"}}, "result.stdout is 'out\\n', not matches '^t'"),
        (True, 1, "result is True, not 1"),
        (b"ab", "ab", "result is b'ab', not 'ab'"),
        ([1, 2], [1, 3], "result[1] is 2, not 3"),
        ([1], [], "result is [1], not 0 items: []"),
        ([1, 2, 3], {"includes": [3, 1]}, "result is [1, 2, 3], not includes [3, 1]"),
    ],
)
def test_a_value_that_does_not_is_described(value: object, expected: object, problem: str) -> None:
    assert mismatch(value, expected) == problem


def test_options_are_keyword_arguments_in_the_words_of_python() -> None:
    options = {"timeoutMs": 1500, "dryRun": True, "start": False, "env": {"KeptAs": "itIs"}}
    assert arguments(["ls", options]) == (
        ["ls"],
        {"timeout": 1.5, "dry_run": True, "auto_start": False, "env": {"KeptAs": "itIs"}},
    )


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ({"step": []}, "step mean nothing"),
        ({"steps": [{"do": "run", "expected": 1}]}, "expected mean nothing"),
        ({"steps": [{"do": "run", "expect": 1, "error": 2}]}, "expect and error in a step"),
        ({"steps": [], "except": {"pyton": "why"}}, "pyton mean nothing"),
        ({}, "either opening or steps"),
    ],
)
def test_a_case_with_a_mistake_is_refused(case: Dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^topic: sample: {problem}$"):
        parse_case("topic", {"title": "sample", **case})
