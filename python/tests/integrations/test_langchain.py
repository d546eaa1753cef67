"""The tools of a sandbox in LangChain."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, List, Sequence

import pytest

from agentfense import AsyncSandbox, InvalidConfigurationError, Sandbox, SandboxNotFoundError
from agentfense.integrations.tools import ToolRequest
from tests.integrations.command import HOLD_LOCK, lock_is_free, lock_is_held
from tests.integrations.script import APPROVED, GREET_THE_MOON, MISFITS, WORK, Call, Script, told
from tests.server import Server

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.messages import BaseMessage, HumanMessage

from agentfense.integrations.langchain import langchain_tools
from examples.langchain_agent import improve
from tests.integrations.scripted_chat_model import ScriptedChatModel


def converse(sandbox: Sandbox, calls: Sequence[Call], **options: Any) -> List[str]:
    """Lets a model work; gives what it was told after each call."""
    script = Script(calls)
    tools = {tool.name: tool for tool in langchain_tools(sandbox, **options)}
    model = ScriptedChatModel.of(script).bind_tools(list(tools.values()))
    messages: List[BaseMessage] = [HumanMessage("work")]
    while True:
        answer = model.invoke(messages)
        if not answer.tool_calls:
            return script.outputs
        messages += [answer, *(tools[call["name"]].invoke(call) for call in answer.tool_calls)]


async def async_converse(sandbox: Any, calls: Sequence[Call], **options: Any) -> List[str]:
    """The same for asyncio."""
    script = Script(calls)
    tools = {tool.name: tool for tool in langchain_tools(sandbox, **options)}
    model = ScriptedChatModel.of(script).bind_tools(list(tools.values()))
    messages: List[BaseMessage] = [HumanMessage("work")]
    while True:
        answer = await model.ainvoke(messages)
        if not answer.tool_calls:
            return script.outputs
        messages += [answer, *[await tools[call["name"]].ainvoke(call) for call in answer.tool_calls]]


def test_a_model_works_under_the_rules_and_is_told_what_it_can_act_on(sandbox: Sandbox) -> None:
    assert converse(sandbox, WORK) == told(WORK)


async def test_the_same_for_asyncio(async_sandbox: AsyncSandbox) -> None:
    assert await async_converse(async_sandbox, WORK) == told(WORK)


async def test_a_blocking_sandbox_serves_asyncio_from_a_thread(sandbox: Sandbox) -> None:
    assert await async_converse(sandbox, MISFITS) == told(MISFITS)


def test_input_that_does_not_fit_is_answered_with_what_is_wrong(sandbox: Sandbox) -> None:
    assert converse(sandbox, MISFITS) == told(MISFITS)


def test_what_is_not_approved_is_not_done(sandbox: Sandbox) -> None:
    def approve(request: ToolRequest) -> bool:
        return request.input.get("command") == "echo yes"

    assert converse(sandbox, APPROVED, approve=approve) == told(APPROVED)


async def test_a_coroutine_function_may_approve(async_sandbox: AsyncSandbox) -> None:
    async def approve(request: ToolRequest) -> bool:
        await asyncio.sleep(0)
        return request.input.get("command") == "echo yes"

    assert await async_converse(async_sandbox, APPROVED, approve=approve) == told(APPROVED)


def test_but_not_where_nobody_waits_for_it(sandbox: Sandbox) -> None:
    async def approve(_: ToolRequest) -> bool:
        return True

    with pytest.raises(InvalidConfigurationError, match="plain function"):
        langchain_tools(sandbox, approve=approve)


def test_names_have_the_prefix_and_only_the_tools_that_were_asked_for_are_declared(sandbox: Sandbox) -> None:
    model = ScriptedChatModel.of(Script([]))
    model.bind_tools(langchain_tools(sandbox, only=["list_files"], prefix="repo_"))
    (declared,) = model.declared
    assert declared["function"]["name"] == "repo_list_files"
    assert declared["function"]["parameters"]["properties"]["recursive"] == {
        "type": "boolean",
        "description": "With all that is below; default false",
    }


async def test_cancelling_ends_the_command_that_runs(async_sandbox: AsyncSandbox) -> None:
    task = asyncio.ensure_future(async_converse(async_sandbox, [HOLD_LOCK]))
    await lock_is_held(async_sandbox)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await lock_is_free(async_sandbox)


async def test_the_loss_of_the_sandbox_is_no_output_of_a_tool(async_sandbox: AsyncSandbox) -> None:
    await async_sandbox.destroy()
    with pytest.raises(SandboxNotFoundError):
        await async_converse(async_sandbox, [Call("list_files", {})])


async def test_tools_for_asyncio_say_that_they_are(async_sandbox: AsyncSandbox) -> None:
    (tool,) = langchain_tools(async_sandbox, only=["changes"])
    with pytest.raises(NotImplementedError, match="ainvoke"):
        tool.invoke({})


def test_the_example(directory: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFENSE_ENDPOINT", server.endpoint)
    assert improve(str(directory), ScriptedChatModel.of(Script(GREET_THE_MOON))) == "done"
    assert 'name="moon"' in (directory / "src/greet.sh").read_text(encoding="utf-8")
