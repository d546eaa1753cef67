"""The tools of a sandbox for LangChain: `pip install "agentfense[langchain]"`."""

from __future__ import annotations

import asyncio
from typing import Any, List, Optional, Sequence

from agentfense._tools.bounds import MAX_OUTPUT
from agentfense.integrations._framework import AnyApprove, AnySandbox, missing, tools_of
from agentfense.integrations.tools import AsyncSandboxTool, SandboxTool, ToolName

try:
    from langchain_core.tools import BaseTool
except ImportError as error:
    raise missing("langchain-core", "langchain") from error

__all__ = ["langchain_tools"]


def langchain_tools(
    sandbox: AnySandbox,
    *,
    only: Optional[Sequence[ToolName]] = None,
    prefix: str = "",
    max_output: int = MAX_OUTPUT,
    approve: Optional[AnyApprove] = None,
) -> List[BaseTool]:
    """The tools of a sandbox for `create_agent`, `bind_tools` and everything else of LangChain that takes tools.

    Those of a Sandbox are for `invoke` and for `ainvoke`, which has a thread do it: there, whoever is cancelled leaves
    a command that runs to its timeout. Those of an AsyncSandbox are for `ainvoke`, and being cancelled ends the
    command.

    Args:
        sandbox: Where the model works.
        only: Which tools; default: all.
        prefix: Put before each name.
        max_output: Characters kept of each output.
        approve: Asked before `shell`, `write_file` and `edit_file`; unless it gives True nothing is done, and the model
            is told.
    """
    return [
        _AsyncTool(tool) if isinstance(tool, AsyncSandboxTool) else _SyncTool(tool)
        for tool in tools_of(sandbox, only, prefix, max_output, approve)
    ]


# The names of arguments are the model's to choose, `self` among them, and the tool itself says what is wrong with them.


class _SyncTool(BaseTool):
    def __init__(self, tool: SandboxTool) -> None:
        super().__init__(name=tool.name, description=tool.description, args_schema=tool.input_schema)
        self._tool = tool

    def _run(self, /, *args: Any, **given: Any) -> str:
        return self._tool.call(given)

    async def _arun(self, /, *args: Any, **given: Any) -> str:
        return await asyncio.to_thread(self._tool.call, given)


class _AsyncTool(BaseTool):
    def __init__(self, tool: AsyncSandboxTool) -> None:
        super().__init__(name=tool.name, description=tool.description, args_schema=tool.input_schema)
        self._tool = tool

    def _run(self, /, *args: Any, **given: Any) -> str:
        raise NotImplementedError("the tools of an AsyncSandbox are for ainvoke: give a Sandbox to use invoke")

    async def _arun(self, /, *args: Any, **given: Any) -> str:
        return await self._tool.call(given)
