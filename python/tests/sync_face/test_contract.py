# Generated from tests/async_face/test_contract.py by scripts/generate_sync.py: change it there.
"""The behaviours that this SDK shares with the TypeScript one, case by case."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Dict, List, Mapping, Sequence

import pytest

from agentfense import Sandbox, SandboxError
from agentfense._face.sync_face import sleep
from tests.contract.case import Case, Step, load_cases, reason_against
from tests.contract.matching import mismatch
from tests.contract.words import SANDBOX_METHODS, arguments, keywords, snake_case
from tests.server import Server

PATIENCE_SECONDS = 20


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.topic}: {case.title}") for case in load_cases()])
def test_contract(case: Case, server: Server, tmp_path: Path) -> None:
    reason = reason_against(case)
    if reason is not None:
        pytest.skip(reason)
    write_files(tmp_path, case.files)
    options = {**keywords(case.options), "endpoint": server.endpoint}
    if case.opening is not None:
        with pytest.raises(SandboxError) as raised:
            with Sandbox.from_local(tmp_path, **options):
                pass
        assert mismatch(raised.value, case.opening["error"], "error") is None
        return
    with Sandbox.from_local(tmp_path, **options) as sandbox:
        kept: Dict[str, object] = {}
        for number, step in enumerate(case.steps or (), start=1):
            if reason_against(step) is None:
                run_step(step, f"step {number} ({step.do})", sandbox, kept, tmp_path)


def run_step(step: Step, place: str, sandbox: Sandbox, kept: Dict[str, object], directory: Path) -> None:
    if step.do == "origin":
        assert read_files(directory) == step.expect, place
    elif step.do == "eventually":
        eventually(step, place, sandbox)
    elif step.error is not None:
        with pytest.raises(SandboxError) as raised:
            call(target_of(step, sandbox, kept), step.do, step.args)
        assert mismatch(raised.value, step.error, "error") is None, place
    else:
        result = call(target_of(step, sandbox, kept), step.do, step.args)
        if step.as_ is not None:
            kept[step.as_] = result
        if step.expect is not None:
            assert mismatch(result, step.expect) is None, place


def target_of(step: Step, sandbox: Sandbox, kept: Mapping[str, object]) -> object:
    return sandbox if step.on is None else kept[step.on]


def call(target: object, method: str, args: Sequence[object]) -> object:
    """`files.readFile` of a target; what comes piece by piece is collected."""
    name = SANDBOX_METHODS.get(method, method) if isinstance(target, Sandbox) else method
    for each in name.split("."):
        target = getattr(target, snake_case(each))
    positional, named = arguments(args)
    result = target(*positional, **named) if callable(target) else target
    # A handle can be iterated too, but is kept for the steps to come.
    if not isinstance(result, Iterator) or hasattr(result, "wait"):
        return result
    collected: List[object] = []
    for item in result:
        collected.append(item)
    return collected


def eventually(step: Step, place: str, sandbox: Sandbox) -> None:
    """For what is told a moment later: asks until the answer is as expected."""
    method, *args = step.args
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        problem = mismatch(call(sandbox, str(method), args), step.expect)
        if problem is None or time.monotonic() > deadline:
            break
        sleep(0.05)
    assert problem is None, place


def write_files(directory: Path, files: Mapping[str, str]) -> None:
    for path, content in files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")


def read_files(directory: Path) -> Dict[str, str]:
    files: List[Path] = [path for path in directory.rglob("*") if path.is_file()]
    return {path.relative_to(directory).as_posix(): path.read_text(encoding="utf-8") for path in files}
