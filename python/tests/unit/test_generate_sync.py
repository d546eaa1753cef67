"""scripts/generate_sync.py: how the blocking face comes from the asynchronous one."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest
from async_to_sync import RewriteError, refuse_leftovers, sync_source
from generate_sync import sync_modules
from generated_folder import GeneratedFolder, bring_up_to_date


@pytest.mark.parametrize(
    ("written", "generated"),
    [
        ("async def run(self) -> None: ...", "def run(self) -> None: ..."),
        ("async with a as b, c: pass", "with a as b, c: pass"),
        ("async for x in y: pass", "for x in y: pass"),
        ("z = [await x async for x in y]", "z = [x for x in y]"),
        ("return await  self.call( 1 )", "return self.call( 1 )"),
        ("class AsyncSandbox(AsyncBase): ...", "class Sandbox(Base): ..."),
        ("x: Dict[str, _AsyncCall]", "x: Dict[str, _Call]"),
        ("def f() -> AsyncIterator[bytes]: ...", "def f() -> Iterator[bytes]: ..."),
        ("x: AsyncGenerator[List[int], None]", "x: Generator[List[int], None, None]"),
        ("from typing import AsyncGenerator, Any", "from typing import Generator, Any"),
        ("def __aexit__(self): ...", "def __exit__(self): ..."),
        ("raise StopAsyncIteration", "raise StopIteration"),
        ("await stream.aclose()", "stream.close()"),
        ("await stack.enter_async_context(x)", "stack.enter_context(x)"),
        ("from .._face.async_face import sleep", "from .._face.sync_face import sleep"),
        (
            "from agentfense._async.client import AsyncSandboxClient",
            "from agentfense._sync.client import SandboxClient",
        ),
        ('__all__ = ["AsyncSandbox", "Other"]', '__all__ = ["Sandbox", "Other"]'),
        ('patch("agentfense._async.client")', 'patch("agentfense._sync.client")'),
    ],
)
def test_words_of_asynchronous_code_become_those_of_blocking_code(written: str, generated: str) -> None:
    assert sync_source(written + "\n") == generated + "\n"


@pytest.mark.parametrize(
    "line",
    [
        "Asynchronous = asyncio_mode = my_async = async_ = isAsync",
        'x = "await AsyncSandbox() in a message"',
        "x = 1  # await the AsyncSandbox, later",
        "x = (1).real",
    ],
)
def test_other_words_comments_and_messages_stay(line: str) -> None:
    assert sync_source(line + "\n") == line + "\n"


@pytest.mark.parametrize(
    ("written", "generated"),
    [
        ("x = (await self.get(1, a=[2])).value", "x = self.get(1, a=[2]).value"),
        ("return (await get())[0]", "return get()[0]"),
        ("x = (await get() or other).value", "x = (get() or other).value"),
        ("x = show(await get()).value", "x = show(get()).value"),
        ("x = (await get())", "x = (get())"),
    ],
)
def test_parentheses_that_were_for_await_alone_go(written: str, generated: str) -> None:
    assert sync_source(written + "\n") == generated + "\n"


def test_a_docstring_speaks_of_the_blocking_classes_and_its_examples_do_not_await() -> None:
    written = '''
        async def run():
            """Gives an AsyncSandbox; you may await its end with `await sandbox.wait()`.

            >>> async with AsyncSandbox.create() as sandbox:
            ...     await sandbox.run("true")

            Or so, and an async function it is::

                result = await sandbox.run("true")
            """
    '''
    generated = '''
        def run():
            """Gives a Sandbox; you may await its end with `sandbox.wait()`.

            >>> with Sandbox.create() as sandbox:
            ...     sandbox.run("true")

            Or so, and an async function it is::

                result = sandbox.run("true")
            """
    '''
    assert sync_source(dedent(written)) == dedent(generated)


def test_lines_for_asynchronous_code_only_are_left_out() -> None:
    written = """
        class AsyncCall:
            # async only
            def __await__(self):
                return asyncio.sleep(0)
            # end async only
            x = 1
    """
    assert sync_source(dedent(written)) == "\nclass Call:\n    x = 1\n"


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("# async only\n", "line 1: `# async only` without an end"),
        ("x\n# end async only\n", "line 2: `# end async only` without a beginning"),
        ("# async only\n# async only\n", "line 2: `# async only` inside of that of line 1"),
    ],
)
def test_a_mark_without_its_partner_is_an_error(written: str, complaint: str) -> None:
    with pytest.raises(RewriteError) as raised:
        sync_source(written)
    assert str(raised.value) == complaint


@pytest.mark.parametrize("line", ['x = f"{await y}"', "asyncio.run(x)", "def f(x: asyncio.Task[None]) -> None: ..."])
def test_a_result_that_still_waits_is_refused_with_the_line(line: str) -> None:
    with pytest.raises(RewriteError, match=f": {re.escape(line)}$"):
        refuse_leftovers(f"import asyncio\n{line}\n")


def test_a_generated_module_names_its_origin_and_is_formatted(tmp_path: Path) -> None:
    write(
        tmp_path / "face/a/module.py",
        "from __future__ import annotations\n\n"
        "import asyncio\n"
        "from typing import Any, AsyncIterator, Iterator\n\n"
        '__all__ = ["AsyncZebra", "Monkey"]\n'
        "# async only\nasyncio.run(x)\n# end async only\n"
        "async def f(x: Any) -> AsyncIterator[\n    int]:\n    y: Iterator[int]\n    yield await x\n",
    )
    assert sync_modules(tmp_path, "face")["a/module.py"].decode() == (
        "# Generated from face/a/module.py by scripts/generate_sync.py: change it there.\n"
        "from __future__ import annotations\n\n"
        "from typing import Any, Iterator\n\n"
        '__all__ = ["Monkey", "Zebra"]\n\n\n'
        "def f(x: Any) -> Iterator[int]:\n    y: Iterator[int]\n    yield x\n"
    )


def test_an_error_names_the_module(tmp_path: Path) -> None:
    write(tmp_path / "face/module.py", "asyncio.run(x)\n")
    with pytest.raises(RewriteError, match=r"^face/module\.py: asyncio belongs into _face"):
        sync_modules(tmp_path, "face")


def test_a_module_whose_source_went_goes_too(tmp_path: Path) -> None:
    write(tmp_path / "out/kept.py", "old")
    write(tmp_path / "out/gone/module.py", "")
    write(tmp_path / "out/__pycache__/kept.pyc", "")
    assert bring_up_to_date(tmp_path / "out", {"kept.py": b"new", "b/new.py": b""}, check=False)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "out",
        "out/__pycache__",
        "out/__pycache__/kept.pyc",
        "out/b",
        "out/b/new.py",
        "out/kept.py",
    ]
    assert (tmp_path / "out/kept.py").read_text() == "new"


def test_a_check_names_each_difference_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "out/same.py", "same")
    write(tmp_path / "out/changed.py", "by hand")
    write(tmp_path / "out/stray.py", "")
    wanted = {"same.py": b"same", "changed.py": b"changed", "missing.py": b""}
    assert not bring_up_to_date(tmp_path / "out", wanted, check=True)
    complaints = capsys.readouterr().err.splitlines()
    assert [Path(line.split()[4]).name for line in complaints] == ["changed.py", "missing.py", "stray.py"]
    assert GeneratedFolder(tmp_path / "out").differences(wanted) == ["changed.py", "missing.py", "stray.py"]
    assert bring_up_to_date(tmp_path / "out", {**wanted, "x.py": b""}, check=False)
    assert bring_up_to_date(tmp_path / "out", {**wanted, "x.py": b""}, check=True)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
