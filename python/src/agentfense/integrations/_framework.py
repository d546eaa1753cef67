"""What the adapters share."""

from __future__ import annotations

import inspect
from typing import List, Optional, Sequence, Union, cast

from agentfense import AsyncSandbox, InvalidConfigurationError, Sandbox
from agentfense.integrations.tools import (
    Approve,
    AsyncApprove,
    AsyncSandboxTool,
    SandboxTool,
    ToolName,
    async_sandbox_tools,
    sandbox_tools,
)

AnySandbox = Union[Sandbox, AsyncSandbox]
AnyApprove = Union[Approve, AsyncApprove]
"""A function; with an AsyncSandbox it may be a coroutine function."""


def missing(package: str, extra: str) -> ImportError:
    """The error of an adapter whose framework is not installed."""
    return ImportError(f'this adapter needs {package}: pip install "agentfense[{extra}]"')


def tools_of(
    sandbox: AnySandbox,
    only: Optional[Sequence[ToolName]],
    prefix: str,
    max_output: int,
    approve: Optional[AnyApprove],
) -> Union[List[SandboxTool], List[AsyncSandboxTool]]:
    """The tools of the sandbox's face."""
    if isinstance(sandbox, AsyncSandbox):
        return async_sandbox_tools(sandbox, only=only, prefix=prefix, max_output=max_output, approve=approve)
    if inspect.iscoroutinefunction(approve):
        raise InvalidConfigurationError("nobody waits for a coroutine function here: approve with a plain function")
    plain = cast("Optional[Approve]", approve)
    return sandbox_tools(sandbox, only=only, prefix=prefix, max_output=max_output, approve=plain)
