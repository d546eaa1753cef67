"""Models of smolagents that follow a script."""

from __future__ import annotations

from typing import Any, List, Sequence

from smolagents import ChatMessage, MessageRole, Model
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

from tests.integrations.script import Script


class ScriptedToolModel(Model):  # type: ignore[misc]
    """Makes calls as they are in a script; in the end it calls final_answer with "done"."""

    def __init__(self, script: Script) -> None:
        super().__init__(model_id="scripted")
        self._script = script

    def generate(self, messages: List[ChatMessage], **_: Any) -> ChatMessage:
        call = self._script.next()
        name, arguments = ("final_answer", {"answer": "done"}) if call is None else (call.tool, dict(call.input))
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        made = ChatMessageToolCall(function=function, id=self._script.id, type="function")
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[made])


class ScriptedCodeModel(Model):  # type: ignore[misc]
    """Writes code as it is in a script."""

    def __init__(self, codes: Sequence[str]) -> None:
        super().__init__(model_id="scripted")
        self._codes = list(codes)

    def generate(self, messages: List[ChatMessage], **_: Any) -> ChatMessage:
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"<code>\n{self._codes.pop(0)}\n</code>")
