"""The tools of a sandbox in the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, List, Optional, Sequence

import pytest

from agentfense import AsyncSandbox, Sandbox, SandboxNotFoundError
from agentfense.integrations.tools import ToolRequest
from tests.integrations.command import HOLD_LOCK, lock_is_free, lock_is_held
from tests.integrations.script import APPROVED, GREET_THE_MOON, MISFITS, WORK, Call, Script, told
from tests.server import Server

pytest.importorskip("agents", reason="openai-agents is not installed")

from agents import Agent, FunctionTool, RunConfig, Runner

from agentfense.integrations.openai_agents import openai_agents_tools
from examples.openai_agents_agent import improve
from tests.integrations.scripted_agents_model import ScriptedAgentsModel


async def converse(sandbox: Any, calls: Sequence[Call], **options: Any) -> List[str]:
    """Lets an agent work; gives what its model was told after each call."""
    script = Script(calls)
    agent = Agent(name="worker", model=ScriptedAgentsModel(script), tools=openai_agents_tools(sandbox, **options))
    await Runner.run(agent, "work", max_turns=len(calls) + 1, run_config=RunConfig(tracing_disabled=True))
    return script.outputs


async def test_a_model_works_under_the_rules_and_is_told_what_it_can_act_on(async_sandbox: AsyncSandbox) -> None:
    assert await converse(async_sandbox, WORK) == told(WORK)


async def test_a_blocking_sandbox_serves_from_threads(sandbox: Sandbox) -> None:
    assert await converse(sandbox, WORK) == told(WORK)


async def test_input_that_does_not_fit_is_answered_with_what_is_wrong(async_sandbox: AsyncSandbox) -> None:
    no_json = Call("write_file", {"raw": '{"path": '}, "the input does not fit: it is no JSON")
    calls = [no_json, *MISFITS]
    assert await converse(async_sandbox, calls) == told(calls)


async def test_what_is_not_approved_is_not_done(async_sandbox: AsyncSandbox) -> None:
    async def approve(request: ToolRequest) -> bool:
        await asyncio.sleep(0)
        return request.input.get("command") == "echo yes"

    assert await converse(async_sandbox, APPROVED, approve=approve) == told(APPROVED)


async def test_cancelling_ends_the_command_that_runs(async_sandbox: AsyncSandbox) -> None:
    task = asyncio.ensure_future(converse(async_sandbox, [HOLD_LOCK]))
    await lock_is_held(async_sandbox)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await lock_is_free(async_sandbox)


async def test_the_loss_of_the_sandbox_ends_the_run(async_sandbox: AsyncSandbox) -> None:
    await async_sandbox.destroy()
    with pytest.raises(Exception, match="sandbox not found") as failure:
        await converse(async_sandbox, [Call("list_files", {})])
    assert isinstance(root_cause(failure.value), SandboxNotFoundError)


def root_cause(error: BaseException) -> Optional[BaseException]:
    """The framework wraps what a tool raises, and we what the transport does."""
    while not isinstance(error, SandboxNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def test_schemas_are_strict_and_what_is_optional_may_be_null(sandbox: Sandbox) -> None:
    (tool,) = openai_agents_tools(sandbox, only=["list_files"], prefix="repo_")
    assert isinstance(tool, FunctionTool)
    assert (tool.name, tool.strict_json_schema) == ("repo_list_files", True)
    assert tool.params_json_schema == {
        "type": "object",
        "properties": {
            "path": {
                "type": ["string", "null"],
                "minLength": 1,
                "description": "Relative to /workspace; default /workspace itself",
            },
            "recursive": {"type": ["boolean", "null"], "description": "With all that is below; default false"},
        },
        "required": ["path", "recursive"],
        "additionalProperties": False,
    }


async def test_the_example(directory: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFENSE_ENDPOINT", server.endpoint)
    assert await improve(str(directory), ScriptedAgentsModel(Script(GREET_THE_MOON))) == "done"
    assert 'name="moon"' in (directory / "src/greet.sh").read_text(encoding="utf-8")
