"""The tools of a sandbox, and the sandbox as an executor, in smolagents."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Sequence

import pytest

from agentfense import InvalidConfigurationError, Sandbox
from agentfense.integrations.tools import ToolRequest
from tests.integrations.script import APPROVED, WORK, Call, Script, told
from tests.server import Server

pytest.importorskip("smolagents", reason="smolagents is not installed")

from smolagents import ActionStep, CodeAgent, FinalAnswerTool, LogLevel, MultiStepAgent, Tool, ToolCallingAgent

from agentfense.integrations.smolagents import SandboxExecutor, smolagents_tools
from examples.smolagents_agent import improve
from tests.integrations.scripted_smolagents_model import ScriptedCodeModel, ScriptedToolModel


def steps_of(agent: MultiStepAgent) -> List[ActionStep]:
    return [step for step in agent.memory.steps if isinstance(step, ActionStep)]


def converse(sandbox: Sandbox, calls: Sequence[Call], **options: Any) -> List[str]:
    """Lets an agent call tools; gives what its model was told after each call."""
    tools = smolagents_tools(sandbox, **options)
    agent = ToolCallingAgent(tools, ScriptedToolModel(Script(calls)), max_steps=len(calls) + 1, verbosity_level=0)
    assert agent.run("work") == "done"
    return [step.observations for step in steps_of(agent)[:-1]]


def code_agent(sandbox: Sandbox, codes: Sequence[str], **options: Any) -> CodeAgent:
    executor = SandboxExecutor(sandbox)
    return CodeAgent(
        options.pop("tools", []),
        ScriptedCodeModel(codes),
        executor=executor,
        max_steps=len(codes),
        verbosity_level=LogLevel.OFF,
        **options,
    )


class TestTools:
    def test_a_model_works_under_the_rules_and_is_told_what_it_can_act_on(self, sandbox: Sandbox) -> None:
        assert converse(sandbox, WORK) == [text.strip() for text in told(WORK)]

    def test_what_is_not_approved_is_not_done(self, sandbox: Sandbox) -> None:
        def approve(request: ToolRequest) -> bool:
            return request.input.get("command") == "echo yes"

        assert converse(sandbox, APPROVED, approve=approve) == [text.strip() for text in told(APPROVED)]

    def test_arguments_have_their_places_too(self, sandbox: Sandbox) -> None:
        read_file, changes = smolagents_tools(sandbox, only=["read_file", "changes"])
        assert read_file("src/greet.sh", 2) == 'echo "hello $name"\n'
        assert changes(1) == "the input does not fit: changes takes nothing"


class TestAgents:
    def test_code_runs_in_the_sandbox_and_keeps_its_variables_from_step_to_step(self, sandbox: Sandbox) -> None:
        agent = code_agent(
            sandbox,
            [
                "import os\nnames = sorted(os.listdir())\nprint('here:', os.getcwd())\nnames",
                "with open('src/greet.sh') as file:\n    text = file.read()",
                "open('.env').read()",
                "open('README.md', 'w')",
                "with open('src/greet.sh', 'w') as file:\n    print(file.write(text.replace('world', place)))",
                "import subprocess\nsubprocess.run(['sh', 'src/greet.sh'])\nfinal_answer({'names': names})",
            ],
        )
        assert agent.run("work", additional_args={"place": "moon"}) == {"names": ["README.md", "src"]}
        first, _, hidden, forbidden, fifth, last = steps_of(agent)
        assert first.observations == (
            "Execution logs:\nhere: /workspace\nLast output from code snippet:\n['README.md', 'src']"
        )
        assert "FileNotFoundError: [Errno 2] No such file or directory: '.env'" in hidden.error.message
        assert "PermissionError: [Errno 13] Permission denied: 'README.md'" in forbidden.error.message
        assert fifth.observations == "Execution logs:\n31\nLast output from code snippet:\nNone"
        assert last.observations.startswith("Execution logs:\nhello moon\n")
        assert [change.path for change in sandbox.changes()] == ["/src/greet.sh"]
        agent.cleanup()

    def test_what_a_failed_step_printed_is_told_with_its_error(self, sandbox: Sandbox) -> None:
        agent = code_agent(sandbox, ["def f():\n    raise ValueError('no')\nprint('before')\nf()", "final_answer(1)"])
        assert agent.run("work") == 1
        failed = steps_of(agent)[0]
        assert failed.observations == "Execution logs:\nbefore\n"
        assert failed.error.message.split("\n") == [
            "Traceback (most recent call last):",
            '  File "<step 1>", line 4, in <module>',
            "    f()",
            '  File "<step 1>", line 2, in f',
            "    raise ValueError('no')",
            "ValueError: no",
        ]

    def test_tools_run_in_the_sandbox(self, sandbox: Sandbox) -> None:
        class WhereTool(Tool):  # type: ignore[misc]
            name = "where"
            description = "Tells where it runs."
            inputs = {"mark": {"type": "string", "description": "Told with it."}}  # noqa: RUF012
            output_type = "string"

            def forward(self, mark: str) -> str:
                import os

                return f"{mark} {os.getcwd()} {os.path.exists('.env')}"

        agent = code_agent(sandbox, ["final_answer(where('in'))"], tools=[WhereTool()])
        assert agent.run("work") == "in /workspace False"

    def test_a_final_answer_of_ones_own_may_say_more(self, sandbox: Sandbox) -> None:
        class Polite(FinalAnswerTool):  # type: ignore[misc]
            def forward(self, answer: Any) -> Any:
                return f"if you please: {answer}"

        executor = SandboxExecutor(sandbox)
        executor.send_tools({"final_answer": Polite()})
        output = executor("final_answer(answer=2)")
        assert (output.output, output.is_final_answer) == ("if you please: 2", True)

    def test_what_cannot_be_sent_is_refused(self, sandbox: Sandbox) -> None:
        executor = SandboxExecutor(sandbox)
        (changes,) = smolagents_tools(sandbox, only=["changes"])
        with pytest.raises(InvalidConfigurationError, match="'changes' reaches into the sandbox"):
            executor.send_tools({"changes": changes})
        with pytest.raises(InvalidConfigurationError, match="'helper' is an agent"):
            executor.send_tools({"helper": object()})
        with pytest.raises(InvalidConfigurationError, match="'x' cannot be sent into the sandbox: it has a object"):
            executor.send_variables({"x": [object()]})
        with pytest.raises(InvalidConfigurationError, match="more than 0"):
            SandboxExecutor(sandbox, timeout=0)

    async def test_a_sandbox_for_asyncio_is_refused(self, async_sandbox: Any) -> None:
        for taker in (SandboxExecutor, smolagents_tools):
            with pytest.raises(InvalidConfigurationError, match="give it a Sandbox"):
                taker(async_sandbox)

    def test_the_example(self, directory: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AGENTFENSE_ENDPOINT", server.endpoint)
        code = "import subprocess\nsubprocess.run(['sed', '-i', 's/world/moon/', 'src/greet.sh'])\nfinal_answer('done')"
        assert improve(str(directory), ScriptedCodeModel([code])) == "done"
        assert 'name="moon"' in (directory / "src/greet.sh").read_text(encoding="utf-8")
