"""A chat model of LangChain that makes calls as they are in a script."""

from __future__ import annotations

from typing import Any, List, Optional

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from tests.integrations.script import Script


class ScriptedChatModel(BaseChatModel):
    """Hears the outputs of its calls, and makes the next one; in the end it says "done"."""

    script: Any
    declared: List[Any] = Field(default_factory=list)

    @classmethod
    def of(cls, script: Script) -> ScriptedChatModel:
        return cls(script=script)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """As models of vendors do it: the tools become what their interface takes."""
        self.declared = [convert_to_openai_tool(tool) for tool in tools]
        return self

    def _generate(
        self,
        messages: List[BaseMessage],
        stop: Optional[List[str]] = None,
        run_manager: Optional[CallbackManagerForLLMRun] = None,
        **_: Any,
    ) -> ChatResult:
        for message in messages:
            if isinstance(message, ToolMessage):
                self.script.hear(message.tool_call_id, str(message.text))
        call = self.script.next()
        if call is None:
            answer = AIMessage("done")
        else:
            answer = AIMessage("", tool_calls=[{"id": self.script.id, "name": call.tool, "args": dict(call.input)}])
        return ChatResult(generations=[ChatGeneration(message=answer)])
