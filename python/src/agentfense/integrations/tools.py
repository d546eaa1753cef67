"""Tools with which a model works in a sandbox, for whatever there is no adapter for.

from agentfense.integrations.tools import sandbox_tools
"""

from __future__ import annotations

from agentfense._async.tools.sandbox_tool import AsyncSandboxTool
from agentfense._async.tools.sandbox_tool import sandbox_tools as async_sandbox_tools
from agentfense._sync.tools.sandbox_tool import SandboxTool, sandbox_tools
from agentfense._tools.call import Approve, AsyncApprove, ToolName, ToolOutput, ToolRequest

__all__ = [
    "Approve",
    "AsyncApprove",
    "AsyncSandboxTool",
    "SandboxTool",
    "ToolName",
    "ToolOutput",
    "ToolRequest",
    "async_sandbox_tools",
    "sandbox_tools",
]
