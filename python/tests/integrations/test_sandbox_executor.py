"""The executor for smolagents by itself: what it runs, what it bears, and what it takes from a hostile sandbox."""

from __future__ import annotations

import builtins
import pickle
import zipfile
from pathlib import Path
from typing import Any, Iterator

import pytest

from agentfense import Sandbox
from tests.conftest import MakeProject
from tests.server import Server

pytest.importorskip("smolagents", reason="smolagents is not installed")

from smolagents.local_python_executor import InterpreterError

from agentfense.integrations._interpreter import interpreter
from agentfense.integrations.smolagents import SandboxExecutor

GONE = "Its variables are gone, and the next step gets a new one"


@pytest.fixture(scope="module")
def sandbox(server: Server) -> Iterator[Sandbox]:
    """One for all: nothing here is written that outlives the Python that it is about."""
    with Sandbox.create(endpoint=server.endpoint) as sandbox:
        yield sandbox


@pytest.fixture
def executor(sandbox: Sandbox) -> Iterator[SandboxExecutor]:
    executor = SandboxExecutor(sandbox, timeout=30.0, max_output=1000)
    yield executor
    executor.cleanup()


def failure(executor: SandboxExecutor, code: str) -> str:
    with pytest.raises(InterpreterError) as caught:
        executor(code)
    return str(caught.value)


class TestSteps:
    def test_the_value_of_the_last_line_is_the_output(self, executor: SandboxExecutor) -> None:
        assert executor("x = 1").output is None
        assert executor("x += 1; x").output == 2
        assert executor("(x, {'a': {x}}, None, 1.5, 'ü')").output == [2, {"a": [2]}, None, 1.5, "ü"]
        assert executor("class A:\n    def __repr__(self): return 'an A'\nA()").output == "an A"
        assert executor("# nothing").output is None
        assert executor("['\\ud800', {'\\ud800': 1}]").output == ["�", {"�": 1}]
        assert not executor("x").is_final_answer

    def test_what_is_printed_by_whoever_is_in_the_logs_in_its_order(self, executor: SandboxExecutor) -> None:
        code = "import os, sys\nprint('one')\nos.system('echo two; echo three >&2')\nprint('four', file=sys.stderr)"
        assert executor(code).logs == "one\ntwo\nthree\nfour\n"
        assert executor("print('a' * 10_000)").logs == f"{'a' * 500}\n[9001 bytes left out]\n{'a' * 499}\n"
        assert executor("print('again')").logs == "again\n"

    def test_errors_leave_the_variables_alone(self, executor: SandboxExecutor) -> None:
        executor("x = 1")
        misspelt = failure(executor, "x +")
        assert misspelt.startswith('  File "<step 2>", line 1\n')
        assert misspelt.endswith("SyntaxError: invalid syntax")
        assert failure(executor, "import sys; sys.exit(3)").endswith("\nSystemExit: 3")
        assert failure(executor, "input()").endswith("\nEOFError: EOF when reading a line")
        assert executor("x").output == 1

    def test_code_that_takes_too_long_is_ended_and_leaves_the_variables_alone(self, executor: SandboxExecutor) -> None:
        executor("x = 1")
        executor.timeout = 0.5
        assert failure(executor, "import time; time.sleep(100)") == "its time was up after 0.5 seconds"
        assert failure(executor, "while True: pass") == "its time was up after 0.5 seconds"
        executor.timeout = None
        assert executor("x").output == 1

    def test_code_that_resists_is_ended_with_its_python(
        self, executor: SandboxExecutor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        executor.send_variables({"y": 2})
        executor("import signal; signal.setitimer = lambda *_: None; x = 1")
        executor.timeout = 0.5
        with monkeypatch.context() as patch:
            patch.setattr(interpreter, "_GRACE_SECONDS", 0.2)
            ending = failure(executor, "while True: pass")
        assert ending == f"the interpreter did not answer in time, and was ended. {GONE}"
        executor.timeout = 30.0
        assert failure(executor, "x").endswith("NameError: name 'x' is not defined")
        assert executor("y").output == 2

    def test_a_python_that_dies_is_replaced_by_one_that_knows_what_was_sent(self, executor: SandboxExecutor) -> None:
        executor.send_variables({"x": {"a": [1]}})
        assert executor("x['b'] = 2; x").output == {"a": [1], "b": 2}
        assert failure(executor, "import os; os._exit(7)") == f"the interpreter ended with exit code 7. {GONE}"
        assert executor("x").output == {"a": [1]}

    def test_a_project_may_have_modules_of_any_name(self, server: Server, project: MakeProject) -> None:
        directory = project({"json.py": "raise SystemExit", "signal.py": "", "mine.py": "here = 1"})
        with Sandbox.from_local(directory, preset="read-only", endpoint=server.endpoint) as sandbox:
            assert SandboxExecutor(sandbox)("import mine; mine.here").output == 1

    def test_where_there_is_no_python_there_is_an_error(self, sandbox: Sandbox) -> None:
        assert failure(SandboxExecutor(sandbox, python="python4"), "1") == (
            "python4 does not run in the sandbox: the interpreter ended with exit code 127"
        )


class TestPackages:
    def test_what_is_there_is_not_installed(self, sandbox: Sandbox) -> None:
        executor = SandboxExecutor(sandbox, ["json", "xml.etree", "*"])
        assert executor("import sys; 'packages-' in str(sys.path)").output is False

    def test_what_is_not_is_installed_with_pip(self, server: Server, project: MakeProject, tmp_path: Path) -> None:
        directory = project({"README.md": ""})
        make_wheel(directory / "tiny-1.0-py3-none-any.whl")
        with Sandbox.from_local(directory, preset="read-only", endpoint=server.endpoint) as sandbox:
            if not sandbox.run(["python3", "-m", "pip", "--version"]).success:
                pytest.skip("the Python of this machine, which the sandbox shows, has no pip")
            executor = SandboxExecutor(sandbox, ["/workspace/tiny-1.0-py3-none-any.whl"])
            assert executor("import tiny; tiny.size").output == "small"
            assert "absent-1.0-py3-none-any.whl" in failure(
                SandboxExecutor(sandbox, ["./absent-1.0-py3-none-any.whl"]), "1"
            )


def make_wheel(path: Path) -> None:
    """As little as pip takes for a package."""
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny.py", "size = 'small'\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")


#: Code in the sandbox that answers in the place of the program that runs it: it knows all that this knows.
FORGE = """
import gc, os, pickle, sys
answers, = [one for one in gc.get_objects() if type(one).__name__ == 'BufferedWriter' and one.fileno() > 2]
token = open('/proc/self/cmdline', 'rb').read().split(b'\\0')[-3]

def forge(answer):
    answers.write(token + answer + b'\\n')
    answers.flush()

class Evil:
    def __reduce__(self):
        return (os.system, ('touch %s' % OWNED,))
"""

NO_ANSWERS = {
    "a pickle": "forge(pickle.dumps(Evil(), 0).replace(b'\\n', b' '))",
    "a list": "forge(b'[]')",
    "nothing": "forge(b'{}')",
    "logs that are no text": """forge(b'{"logs": ["a"]}')""",
    "a final answer that is and is not": """forge(b'{"logs": "", "is_final": 1}')""",
    "an error that is none": """forge(b'{"logs": "", "error": {"a": 1}}')""",
    "what is too deep": """forge(b'{"logs": ' + b'[' * 1_000_000 + b']' * 1_000_000 + b'}')""",
    "a number that takes for ever": """forge(b'{"logs": "", "value": ' + b'9' * 5_000 + b'}')""",
    "no text at all": "forge(bytes(range(128, 255)))",
}


class TestAHostileSandbox:
    @pytest.fixture
    def owned(self, executor: SandboxExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """A file that is not there, unless something of the sandbox's was done here."""
        path = tmp_path / "owned"
        executor.send_variables({"OWNED": str(path)})
        executor(FORGE)

        def refuse(*_: Any, **__: Any) -> Any:
            raise AssertionError("something of the sandbox's was evaluated in this process")

        with monkeypatch.context() as patch:
            for place, name in ((pickle, "loads"), (pickle, "load"), (builtins, "eval"), (builtins, "exec")):
                patch.setattr(place, name, refuse)
            yield path
        assert not path.exists()

    def test_an_object_is_not_handed_over(self, executor: SandboxExecutor, owned: Path) -> None:
        assert failure(executor, "final_answer(Evil())").endswith(
            "TypeError: a Evil cannot be handed over: convert it to text, numbers, lists or dictionaries first"
        )
        assert failure(executor, "final_answer({'a': [pickle.dumps(Evil())]})").endswith("lists or dictionaries first")
        assert "Evil object" in executor("Evil()").output
        assert executor("final_answer(str(pickle.dumps(Evil(), 0)))").output.startswith("b'c")

    @pytest.mark.parametrize("forged", NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
    def test_an_answer_that_is_none_ends_it(self, executor: SandboxExecutor, owned: Path, forged: str) -> None:
        assert failure(executor, forged) == f"the interpreter gave an answer that is none, and was ended. {GONE}"
        assert executor("1").output == 1

    def test_an_answer_without_an_end_ends_it(self, executor: SandboxExecutor, owned: Path) -> None:
        endless = "while True: answers.write(b'x' * 65536)"
        assert failure(executor, endless) == f"the interpreter gave an answer that is too large, and was ended. {GONE}"
        assert executor("1").output == 1

    def test_an_answer_that_is_forged_well_is_text_and_json_still(self, executor: SandboxExecutor, owned: Path) -> None:
        forged = """forge(b'{"logs": "' + b'x' * 9_000 + b'", "value": {"__reduce__": "a"}, "is_final": true}')"""
        output = executor(forged)
        assert (output.output, output.is_final_answer) == ({"__reduce__": "a"}, True)
        assert len(output.logs) < 1200

    def test_what_others_write_to_the_terminal_is_nothing(self, executor: SandboxExecutor, owned: Path) -> None:
        code = "for end in ('\\n', ''):\n    answers.write(b'Password: ' + end.encode())\nanswers.flush()\n2"
        assert executor(code).output == 2
