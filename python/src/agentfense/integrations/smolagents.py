"""A sandbox for smolagents: `pip install "agentfense[smolagents]"`."""

from __future__ import annotations

from threading import Lock
from typing import Any, Dict, List, Mapping, Optional, Sequence

from agentfense import AsyncSandbox, InvalidConfigurationError, Sandbox
from agentfense._tools.bounds import MAX_OUTPUT
from agentfense.integrations._framework import missing
from agentfense.integrations._interpreter import Answer, Interpreter, InterpreterEnded
from agentfense.integrations.tools import Approve, SandboxTool, ToolName, sandbox_tools

try:
    from smolagents import Tool
    from smolagents.local_python_executor import CodeOutput, InterpreterError, PythonExecutor
    from smolagents.tools import get_tools_definition_code
except ImportError as error:
    raise missing("smolagents", "smolagents") from error

__all__ = ["SandboxExecutor", "smolagents_tools"]

_PLAIN = (str, int, float, type(None))
_INSTALL_SECONDS = 600.0


def smolagents_tools(
    sandbox: Sandbox,
    *,
    only: Optional[Sequence[ToolName]] = None,
    prefix: str = "",
    max_output: int = MAX_OUTPUT,
    approve: Optional[Approve] = None,
) -> List[Tool]:
    """The tools of a sandbox for a `ToolCallingAgent`.

    A `CodeAgent` wants a `SandboxExecutor` instead: its code then runs in the sandbox itself.

    Args:
        sandbox: Where the model works.
        only: Which tools; default: all.
        prefix: Put before each name.
        max_output: Characters kept of each output.
        approve: Asked before `shell`, `write_file` and `edit_file`; unless it gives True nothing is done, and the model
            is told.
    """
    _require_blocking(sandbox)
    tools = sandbox_tools(sandbox, only=only, prefix=prefix, max_output=max_output, approve=approve)
    return [_SandboxTool(tool) for tool in tools]


class _SandboxTool(Tool):  # type: ignore[misc]
    # Its parameters are those of the tool that it is made of.
    skip_forward_signature_validation = True
    output_type = "string"

    def __init__(self, tool: SandboxTool) -> None:
        self.name = tool.name
        self.description = tool.description
        schema = tool.input_schema
        self.inputs = {
            name: value if name in schema["required"] else {**value, "nullable": True}
            for name, value in schema["properties"].items()
        }
        self._tool = tool
        super().__init__()

    def forward(self, *args: Any, **kwargs: Any) -> str:
        if len(args) > len(self.inputs):
            return f"the input does not fit: {self.name} takes {', '.join(self.inputs) or 'nothing'}"
        return self._tool.call({**dict(zip(self.inputs, args)), **kwargs})


class SandboxExecutor(PythonExecutor):  # type: ignore[misc]
    """Runs the code of a `CodeAgent` in a sandbox: `CodeAgent([], model, executor=SandboxExecutor(sandbox))`.

    One Python runs there from step to step and keeps its variables; when it ends, the next step gets a new one, and the
    model is told. Nothing of the code runs in this process, and all that comes back from there is text and JSON: an
    answer that is not has to be converted by the code, which is told so.

    Tools of the agent run in the sandbox too, under its rules: their source is sent there.
    """

    #: Seconds for each step; None is for ever.
    timeout: Optional[float]

    def __init__(
        self,
        sandbox: Sandbox,
        additional_imports: Sequence[str] = (),
        *,
        timeout: Optional[float] = 60.0,
        max_output: int = MAX_OUTPUT,
        python: str = "python3",
    ) -> None:
        """Nothing is started before the first step.

        Args:
            sandbox: Where the code runs.
            additional_imports: Packages that the code needs. Those that are not in the sandbox are installed with pip,
                which has to be there, and to reach its index.
            timeout: Seconds for each step; None is for ever.
            max_output: Characters kept of what a step prints.
            python: The name of the program in the sandbox.
        """
        _require_blocking(sandbox)
        if timeout is not None and timeout <= 0:
            raise InvalidConfigurationError(f"the timeout is {timeout}: it has to be more than 0")
        self._sandbox = sandbox
        self.timeout = timeout
        self._max_output = max_output
        self._python = python
        self._packages = list(additional_imports)
        self._variables: Dict[str, Any] = {}
        self._definitions = ""
        self._interpreter: Optional[Interpreter] = None
        self._steps = 0
        self._turn = Lock()
        # Where an agent looks for what was printed by a step that failed.
        self.state = {"_print_outputs": ""}

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """Has the code find these: text, numbers, lists, dictionaries."""
        given = {name: _plain(value, name) for name, value in variables.items()}
        with self._turn:
            self._variables.update(given)
            if self._interpreter is not None:
                self._setup(self._interpreter, {"do": "set", "variables": given})

    def send_tools(self, tools: Mapping[str, Any]) -> None:
        """Has the code find these, which run there as well: their source is sent."""
        for name, tool in tools.items():
            _require_source(name, tool)
        packages = [package for tool in tools.values() for package in _requirements(tool)]
        with self._turn:
            self._packages.extend(package for package in packages if package not in self._packages)
            self._definitions = get_tools_definition_code(dict(tools)) if tools else ""
            if self._interpreter is not None:
                self._prepare(self._interpreter)

    def __call__(self, code_action: str) -> CodeOutput:
        """Runs the code of a step."""
        with self._turn:
            self._steps += 1
            self.state["_print_outputs"] = ""
            answer = self._ask(self._running(), self._run_request(code_action), self.timeout)
            self.state["_print_outputs"] = answer.logs
        if answer.error is not None:
            raise InterpreterError(answer.error)
        return CodeOutput(output=answer.value, logs=answer.logs, is_final_answer=answer.is_final)

    def cleanup(self) -> None:
        """Ends the Python. The sandbox stays."""
        interpreter, self._interpreter = self._interpreter, None
        if interpreter is not None:
            interpreter.close()

    def _run_request(self, code: str) -> Dict[str, Any]:
        return {"do": "run", "code": code, "name": f"<step {self._steps}>", "seconds": self.timeout}

    def _running(self) -> Interpreter:
        """The interpreter, with everything in it that was sent so far."""
        if self._interpreter is None:
            try:
                interpreter = Interpreter(self._sandbox, self._python, self._max_output)
            except InterpreterEnded as error:
                raise InterpreterError(f"{self._python} does not run in the sandbox: {error}") from error
            self._interpreter = interpreter
            self._setup(interpreter, {"do": "set", "variables": self._variables})
            self._prepare(interpreter)
        return self._interpreter

    def _prepare(self, interpreter: Interpreter) -> None:
        if self._packages:
            self._setup(interpreter, {"do": "install", "packages": self._packages})
        if self._definitions:
            definitions = {"do": "define", "code": self._definitions, "name": "<tools>", "seconds": self.timeout}
            self._setup(interpreter, definitions)

    def _setup(self, interpreter: Interpreter, request: Mapping[str, Any]) -> None:
        answer = self._ask(interpreter, request, _INSTALL_SECONDS)
        if answer.error is not None:
            self.cleanup()
            raise InterpreterError("\n".join(part for part in (answer.logs, answer.error) if part))

    def _ask(self, interpreter: Interpreter, request: Mapping[str, Any], seconds: Optional[float]) -> Answer:
        try:
            return interpreter.ask(request, seconds)
        except InterpreterEnded as error:
            self._interpreter = None
            raise InterpreterError(f"{error}. Its variables are gone, and the next step gets a new one") from error
        except BaseException:
            self._interpreter = None
            raise


def _require_blocking(sandbox: object) -> None:
    if isinstance(sandbox, AsyncSandbox):
        raise InvalidConfigurationError("smolagents does not know asyncio: give it a Sandbox")


def _plain(value: Any, name: str) -> Any:
    """A variable in what JSON has words for."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item, name) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, name) for key, item in value.items()}
    raise InvalidConfigurationError(
        f"the variable {name!r} cannot be sent into the sandbox: it has a {type(value).__name__} in it",
        hint="only text, numbers, lists and dictionaries with text as keys are sent",
    )


def _require_source(name: str, tool: object) -> None:
    if isinstance(tool, _SandboxTool):
        raise InvalidConfigurationError(
            f"the tool {name!r} reaches into the sandbox, where the code of this agent runs already",
            hint="leave the tools of smolagents_tools to a ToolCallingAgent",
        )
    if not isinstance(tool, Tool):
        raise InvalidConfigurationError(f"{name!r} is an agent, and only tools can be sent into the sandbox")


def _requirements(tool: Any) -> List[str]:
    packages: List[str] = tool.to_dict()["requirements"]
    return [{"PIL": "pillow"}.get(package, package) for package in packages if package != "smolagents"]
