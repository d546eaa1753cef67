"""Tools with which a model works in a sandbox, and nowhere else."""

from __future__ import annotations

# async only
import inspect

# end async only
from typing import Any, Dict, List, Mapping, Optional, Sequence

from agentfense._async.sandbox import AsyncSandbox
from agentfense._async.tools.context import AsyncRunTool, AsyncToolContext
from agentfense._async.tools.files import edit_file, list_files, read_file, write_file
from agentfense._async.tools.search import search
from agentfense._async.tools.shell import changes, shell
from agentfense._face.turn import AsyncTurn
from agentfense._tools.bounds import MAX_OUTPUT
from agentfense._tools.call import AsyncApprove, ToolName, ToolOutput, ToolRequest
from agentfense._tools.declaration import DECLARATIONS, declaration_of
from agentfense._tools.failure import ToolFailure, text_for_model

_RUNS: Mapping[ToolName, AsyncRunTool] = {
    "shell": shell,
    "read_file": read_file,
    "write_file": write_file,
    "edit_file": edit_file,
    "list_files": list_files,
    "search": search,
    "changes": changes,
}


class AsyncSandboxTool:
    """A tool in a form that every model interface can be given."""

    #: With the prefix.
    name: str
    description: str
    #: A plain JSON Schema.
    input_schema: Dict[str, Any]
    #: It only looks.
    read_only: bool

    def __init__(self, tool: ToolName, prefix: str, context: AsyncToolContext, approve: Optional[AsyncApprove]) -> None:
        """For `sandbox_tools`, which makes them."""
        self._declaration = declaration_of(tool)
        self._tool = tool
        self._context = context
        self._approve = approve
        self.name = prefix + tool
        self.description = self._declaration.description
        self.input_schema = self._declaration.input_schema
        self.read_only = self._declaration.read_only

    async def execute(self, input: object) -> ToolOutput:
        """Does what the model asks for, with what it sent as input, already parsed.

        Raises when the sandbox is out of reach or gone; what a model can act on is told.
        """
        try:
            return ToolOutput(await self._run(input), is_error=False)
        except Exception as error:
            return ToolOutput(text_for_model(error), is_error=True)

    async def call(self, input: object) -> str:
        """The same, and only the text."""
        return (await self.execute(input)).text

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    async def _run(self, given: object) -> str:
        accepted = self._declaration.accept(given)
        if not self.read_only:
            await self._expect_approval(accepted)
        return await _RUNS[self._tool](accepted, self._context)

    async def _expect_approval(self, accepted: Dict[str, Any]) -> None:
        if self._approve is None:
            return
        answer: object = self._approve(ToolRequest(self._tool, dict(accepted)))
        # async only
        if inspect.isawaitable(answer):
            answer = await answer
        # end async only
        if answer is not True:
            raise ToolFailure("this call was not approved, and nothing was done")


def sandbox_tools(
    sandbox: AsyncSandbox,
    *,
    only: Optional[Sequence[ToolName]] = None,
    prefix: str = "",
    max_output: int = MAX_OUTPUT,
    approve: Optional[AsyncApprove] = None,
) -> List[AsyncSandboxTool]:
    """Tools with which a model works in a sandbox, and nowhere else.

    Args:
        sandbox: Where it works.
        only: Which tools; default: all.
        prefix: Put before each name: "repo_" makes repo_shell.
        max_output: Characters kept of each output; what is beyond is left out, and the text says so.
        approve: Asked before `shell`, `write_file` and `edit_file`; unless it gives True nothing is done, and the model
            is told.
    """
    context = AsyncToolContext(sandbox, max_output, AsyncTurn())
    return [AsyncSandboxTool(tool, prefix, context, approve) for tool in (DECLARATIONS if only is None else only)]
