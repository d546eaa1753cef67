"""A LangChain model that works in a sandbox."""

from __future__ import annotations

from typing import List

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage

from agentfense import Sandbox
from agentfense.integrations.langchain import langchain_tools


def improve(directory: str, model: BaseChatModel) -> str:
    with Sandbox.from_local(directory, preset="development") as sandbox:
        tools = {tool.name: tool for tool in langchain_tools(sandbox)}
        programmer = model.bind_tools(list(tools.values()))
        messages: List[BaseMessage] = [HumanMessage("Let src/greet.sh greet the moon.")]
        while True:
            answer = programmer.invoke(messages)
            if not answer.tool_calls:
                sandbox.apply()
                return str(answer.text)
            messages += [answer, *(tools[call["name"]].invoke(call) for call in answer.tool_calls)]
