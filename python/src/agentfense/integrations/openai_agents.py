"""The tools of a sandbox for the OpenAI Agents SDK: `pip install "agentfense[openai-agents]"`."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from agentfense._tools.bounds import MAX_OUTPUT
from agentfense.integrations._framework import AnyApprove, AnySandbox, missing, tools_of
from agentfense.integrations.tools import AsyncSandboxTool, SandboxTool, ToolName

try:
    from agents import FunctionTool, Tool
except ImportError as error:
    raise missing("openai-agents", "openai-agents") from error

__all__ = ["openai_agents_tools"]


def openai_agents_tools(
    sandbox: AnySandbox,
    *,
    only: Optional[Sequence[ToolName]] = None,
    prefix: str = "",
    max_output: int = MAX_OUTPUT,
    approve: Optional[AnyApprove] = None,
) -> List[Tool]:
    """The tools of a sandbox for an `Agent` of the OpenAI Agents SDK.

    What a model cannot act on, a lost connection or a sandbox that is gone, ends the run. With an AsyncSandbox,
    cancelling the run ends the command that runs. The calls of a Sandbox are made in threads: there the command runs to
    its timeout.

    Args:
        sandbox: Where the model works.
        only: Which tools; default: all.
        prefix: Put before each name.
        max_output: Characters kept of each output.
        approve: Asked before `shell`, `write_file` and `edit_file`; unless it gives True nothing is done, and the model
            is told.
    """
    return [_function_tool(tool) for tool in tools_of(sandbox, only, prefix, max_output, approve)]


def _function_tool(tool: Union[SandboxTool, AsyncSandboxTool]) -> FunctionTool:
    async def invoke(_: object, arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return "the input does not fit: it is no JSON"
        if isinstance(tool, AsyncSandboxTool):
            return await tool.call(given)
        return await asyncio.to_thread(tool.call, given)

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=_strict_schema(tool.input_schema),
        on_invoke_tool=invoke,
        strict_json_schema=True,
    )


def _strict_schema(schema: Mapping[str, Any]) -> Dict[str, Any]:
    """In the strict mode everything is required, and what is optional may be null."""
    properties = {
        name: value if name in schema["required"] else {**value, "type": [value["type"], "null"]}
        for name, value in schema["properties"].items()
    }
    return {**schema, "properties": properties, "required": list(properties)}
