"""A model of the OpenAI Agents SDK that makes calls as they are in a script."""

from __future__ import annotations

import json
from typing import Any, AsyncIterator, List

from agents import Model, ModelResponse, Tool, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from tests.integrations.script import Script


class ScriptedAgentsModel(Model):
    """Hears the outputs of its calls, and makes the next one; in the end it says "done"."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.tools: List[Tool] = []

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *_: Any, **__: Any
    ) -> ModelResponse:
        self.tools = tools
        for item in input if isinstance(input, list) else []:
            if item.get("type") == "function_call_output":
                self._script.hear(item["call_id"], item["output"])
        call = self._script.next()
        if call is None:
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            item = ResponseOutputMessage(
                id="message", role="assistant", type="message", status="completed", content=[text]
            )
        else:
            # As models write it: what is no JSON is put into a script as text.
            arguments = call.input.get("raw") or json.dumps(call.input)
            item = ResponseFunctionToolCall(
                call_id=self._script.id, name=call.tool, arguments=arguments, type="function_call"
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("these tests do not stream")
