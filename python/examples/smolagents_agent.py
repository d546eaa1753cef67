"""A CodeAgent of smolagents whose code runs in a sandbox."""

from __future__ import annotations

from smolagents import CodeAgent, Model

from agentfense import Sandbox
from agentfense.integrations.smolagents import SandboxExecutor


def improve(directory: str, model: Model) -> str:
    with Sandbox.from_local(directory, preset="development") as sandbox:
        agent = CodeAgent(tools=[], model=model, executor=SandboxExecutor(sandbox))
        answer = agent.run("Let src/greet.sh greet the moon.")
        sandbox.apply()
        return str(answer)
