"""Code in contexts that keep its names."""

from __future__ import annotations

from typing import AsyncIterator, List

import pytest

from agentfense import AsyncSandbox, CodeLanguage, CodeResult, InvalidConfigurationError, ProcessKind, SandboxError
from tests.server import Server


@pytest.fixture
async def sandbox(server: Server) -> AsyncIterator[AsyncSandbox]:
    async with AsyncSandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        yield sandbox


async def test_it_tells_what_it_does_and_keeps_its_names(sandbox: AsyncSandbox) -> None:
    heard: List[object] = []
    code = "print('ä', flush=True)\ndisplay({'k': 1})\nx = 20\nx + 1"
    execution = await sandbox.run_code(code, on_stdout=heard.append, on_result=heard.append)
    assert heard == ["ä\n", *execution.results]
    assert [result.is_main for result in execution.results] == [False, True]
    assert (execution.results[0].json, execution.text, execution.stdout) == ({"k": 1}, "21", "ä\n")
    assert (execution.execution_count, execution.error, execution.exit_code) == (1, None, 0)
    failed = await sandbox.run_code("x / 0", on_error=lambda error: heard.append(error.name))
    assert failed.error is not None
    assert failed.error.value == "division by zero"
    assert (heard[-1], failed.exit_code, failed.text) == ("ZeroDivisionError", 1, None)
    late = await sandbox.run_code("while True: pass", timeout=0.2)
    assert (late.timed_out, late.context_lost) == (True, False)
    assert (await sandbox.run_code("import os\n(x, os.environ['A'])", env={"A": "b"})).text == "(20, 'b')"
    assert [each.info.kind for each in await sandbox.processes()] == [ProcessKind.CONTEXT]


async def test_contexts_are_made_found_restarted_and_removed(sandbox: AsyncSandbox) -> None:
    async with sandbox.create_code_context("bash", env={"A": "b"}, workdir="/tmp") as context:
        assert (context.language, context.info.busy) == (CodeLanguage.BASH, False)
        assert (await context.run("pwd; echo $A; cd /")).stdout == "/tmp\nb\n"
        assert (await sandbox.run_code("pwd; false", context=context)).exit_code == 1
        assert (await sandbox.run_code("pwd", context=context.id)).stdout == "/\n"
        assert [each.id for each in await sandbox.code_contexts()] == [context.id]
        await context.interrupt()
        await context.restart()
        assert (await context.run("pwd")).execution_count == 1
        lost = await context.run("exit 3")
        assert (lost.context_lost, lost.exit_code) == (True, 3)
        assert "exit code 3" in ((await context.run("true")).restarted or "")
        with pytest.raises(SandboxError) as raised:
            await sandbox.run_code("1", language="python", context=context)
        assert raised.value.code == "INVALID_ARGUMENT"
    assert await sandbox.code_contexts() == []
    await context.remove()
    with pytest.raises(SandboxError) as gone:
        await context.run("true")
    assert gone.value.code == "CONTEXT_NOT_FOUND"
    with pytest.raises(InvalidConfigurationError, match="language must be one of"):
        await sandbox.run_code("1", language="cobol")


def test_results_have_names_for_what_they_hold() -> None:
    data = {"text/plain": "t", "image/png": "cA==", "application/json": "[1]", "text/html": "<b>"}
    table, chart = '{"a": [1]}', '{"type": "line"}'
    result = CodeResult(
        True,
        {
            **data,
            "application/vnd.agentfense.data+json": table,
            "application/vnd.agentfense.chart+json": chart,
        },
    )
    assert (result.text, result.png, result.json, result.html, result.svg) == ("t", "cA==", [1], "<b>", None)
    assert (result.table, result.chart) == ({"a": [1]}, {"type": "line"})
    assert CodeResult(True, {"application/json": "{"}).json is None
