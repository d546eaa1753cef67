"""An agent of the OpenAI Agents SDK that works in a sandbox."""

from __future__ import annotations

from typing import Union

from agents import Agent, Model, Runner

from agentfense import AsyncSandbox
from agentfense.integrations.openai_agents import openai_agents_tools


async def improve(directory: str, model: Union[Model, str]) -> str:
    async with AsyncSandbox.from_local(directory, preset="development") as sandbox:
        agent = Agent(name="Programmer", model=model, tools=openai_agents_tools(sandbox))
        result = await Runner.run(agent, "Let src/greet.sh greet the moon.")
        await sandbox.apply()
        return str(result.final_output)
