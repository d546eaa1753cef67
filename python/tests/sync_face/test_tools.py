# Generated from tests/async_face/test_tools.py by scripts/generate_sync.py: change it there.
"""What the tools of a sandbox do, and what they tell a model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

import pytest

from agentfense import InvalidConfigurationError, RuleLike, Sandbox, SandboxNotRunningError
from agentfense._sync.tools.sandbox_tool import SandboxTool, sandbox_tools
from agentfense._tools.call import ToolRequest
from tests.concurrency.sync_face import at_once
from tests.server import Server

FILES: Mapping[str, Union[str, bytes]] = {
    "README.md": "# Greeter\n",
    ".env": "TOKEN=s3cret\n",
    "src/greet.sh": 'name="world"\necho "hello $name"\n',
}
RULES: List[RuleLike] = [
    {"pattern": "**/*", "permission": "read"},
    {"pattern": "/src/**", "permission": "write"},
    {"pattern": ".env*", "permission": "none", "priority": 100},
]


@pytest.fixture
def sandbox(server: Server, tmp_path: Path) -> Iterator[Sandbox]:
    for path, content in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content.encode() if isinstance(content, str) else content)
    with Sandbox.from_local(tmp_path, permissions=RULES, endpoint=server.endpoint) as sandbox:
        yield sandbox


class User:
    """Calls tools by name; what could not be done begins with "error: "."""

    def __init__(self, sandbox: Sandbox, **options: Any) -> None:
        self._tools: Dict[str, SandboxTool] = {tool.name: tool for tool in sandbox_tools(sandbox, **options)}

    def use(self, tool: str, given: Optional[object] = None) -> str:
        output = self._tools[tool].execute(given)
        return f"error: {output.text}" if output.is_error else output.text


def test_which_tools_there_are(sandbox: Sandbox) -> None:
    tools = sandbox_tools(sandbox)
    acting = ["shell", "write_file", "edit_file"]
    assert [tool.name for tool in tools if not tool.read_only] == acting
    assert [tool.name for tool in tools if tool.read_only] == ["read_file", "list_files", "search", "changes"]
    assert [tool.name for tool in sandbox_tools(sandbox, only=["search", "shell"], prefix="repo_")] == [
        "repo_search",
        "repo_shell",
    ]
    with pytest.raises(InvalidConfigurationError, match="there is no tool 'toString'"):
        sandbox_tools(sandbox, only=["toString"])  # type: ignore[list-item]
    tools[0].input_schema["properties"].clear()
    assert sandbox_tools(sandbox)[0].input_schema["properties"] != {}


def test_null_is_absent_and_what_does_not_fit_is_told(sandbox: Sandbox) -> None:
    user = User(sandbox)
    assert user.use("read_file", {"path": "README.md", "offset": None, "limit": 2.0}) == "# Greeter\n"
    assert user.use("list_files") == "README.md\nsrc/"
    assert user.use("read_file", {}) == (
        "error: the input does not fit: path: Invalid input: expected string, received undefined"
    )
    half = user.use("read_file", {"path": "\ud800"})
    assert half == 'error: "�": it does not exist'


def test_shell_tells_how_a_command_ended(sandbox: Sandbox) -> None:
    user = User(sandbox)
    assert user.use("shell", {"command": "true"}) == "(no output)"
    assert user.use("shell", {"command": "pwd", "workdir": "src"}) == "/workspace/src"
    assert user.use("shell", {"command": "pwd", "workdir": "nowhere"}).startswith("error: ")
    assert user.use("shell", {"command": "cat .env"}) == (
        "[stderr]\ncat: .env: No such file or directory\n[exit code 1]"
    )
    assert user.use("shell", {"command": "sleep 30", "timeout_ms": 50}) == "[ended after 50 ms: its time was up]"
    short = User(sandbox, max_output=12)
    assert short.use("shell", {"command": "seq 100; exit 4"}) == (
        "1\n2\n3\n\n[279 characters left out]\n99\n100\n[exit code 4]"
    )
    shorter = User(sandbox, max_output=3)
    assert shorter.use("shell", {"command": "printf '😀😁😂😃'"}) == "😀😁\n[1 characters left out]\n😃"


def test_read_file_reads_on_where_it_stopped_without_losing_or_repeating_a_line(sandbox: Sandbox) -> None:
    lines = "".join(f"line {number}\n" for number in range(1, 501))
    sandbox.files.write_file("src/long", lines)
    user = User(sandbox, max_output=1000)
    read, offset = "", 1
    while offset:
        text = user.use("read_file", {"path": "src/long", "offset": offset})
        more = re.fullmatch(r"(.*)\[more lines: read on with offset (\d+)\]", text, re.DOTALL)
        kept, offset = (more.group(1), int(more.group(2))) if more else (text, 0)
        assert len(kept) <= 1000
        read += kept
    assert read == lines


def test_read_file_cuts_a_line_that_is_too_long_by_itself_and_fetches_no_more_of_it(
    sandbox: Sandbox,
) -> None:
    sandbox.run("head -c 50000000 /dev/zero | tr '\\0' x > src/wide", check=True)
    user = User(sandbox, max_output=10)
    assert user.use("read_file", {"path": "src/wide"}) == "xxxxxxxxxx\n[line 1 is cut: it is too long]"


def test_read_file_tells_of_empty_files_ends_directories_and_binaries(sandbox: Sandbox) -> None:
    files = sandbox.files
    files.write_file("src/empty", "")
    files.write_file("src/binary", b"\1\0\2")
    files.write_file("src/unended", "\ufeffa\nb")
    user = User(sandbox)
    assert user.use("read_file", {"path": "src/empty"}) == "(empty file)"
    assert user.use("read_file", {"path": "src/binary"}) == "error: this is no text file"
    assert user.use("read_file", {"path": "src/unended"}) == "\ufeffa\nb"
    assert user.use("read_file", {"path": "src/unended", "limit": 1}) == (
        "\ufeffa\n[more lines: read on with offset 2]"
    )
    assert user.use("read_file", {"path": "src/unended", "offset": 2}) == "b"
    assert user.use("read_file", {"path": "src/unended", "offset": 3}) == "error: src/unended has only 2 lines"
    assert user.use("read_file", {"path": "src"}).startswith("error: ")
    assert user.use("read_file", {"path": ".env"}) == 'error: ".env": it does not exist'
    assert user.use("read_file", {"path": "/etc/passwd"}) == 'error: "etc/passwd": it does not exist'
    assert user.use("read_file", {"path": "../etc/passwd"}).startswith("error: ")


def test_write_file_makes_the_directories_on_its_way(sandbox: Sandbox) -> None:
    user = User(sandbox)
    assert user.use("write_file", {"path": "src/deep/er/new.txt", "content": "new\n"}) == ("wrote src/deep/er/new.txt")
    assert user.use("write_file", {"path": "README.md", "content": ""}) == 'error: "README.md": permission denied'
    assert user.use("changes") == "added src/deep\nadded src/deep/er\nadded src/deep/er/new.txt"
    assert User(sandbox, max_output=20).use("changes") == ("added src/deep\n[2 more left out: these are the first]")


def test_edit_file_takes_the_texts_as_they_are_and_keeps_the_rest_and_the_mode(sandbox: Sandbox) -> None:
    sandbox.files.write_file("src/run", "\ufeffa\r\n$1 a\r\n", mode=0o755)
    user = User(sandbox)
    edit: Dict[str, object] = {"path": "src/run", "old_text": "a", "new_text": "\\1$&"}
    assert user.use("edit_file", edit) == (
        "error: the old text is in src/run 2 times: give more of what is around it, or replace all"
    )
    assert user.use("edit_file", {**edit, "replace_all": True}) == "edited src/run in 2 places"
    assert sandbox.files.read_file("src/run") == "\ufeff\\1$&\r\n$1 \\1$&\r\n".encode()
    assert sandbox.files.stat("src/run").mode & 0o777 == 0o755
    assert user.use("edit_file", edit) == ("error: the old text is not in src/run: it must be there exactly as given")
    sandbox.files.write_file("src/latin1", b"a\xe9")
    assert user.use("edit_file", {**edit, "path": "src/latin1"}) == "error: src/latin1 is no UTF-8 text"
    assert sandbox.files.read_file("src/latin1") == b"a\xe9"


def test_edit_file_loses_none_of_several_edits_of_one_file_at_the_same_time(sandbox: Sandbox) -> None:
    words = [f"<{number}>" for number in range(10)]
    sandbox.files.write_file("src/words", " ".join(words))
    user = User(sandbox)

    def edit(word: str) -> str:
        return user.use("edit_file", {"path": "src/words", "old_text": word, "new_text": "done"})

    assert at_once([lambda word=word: edit(word) for word in words]) == ["edited src/words"] * 10  # type: ignore[misc]
    assert sandbox.read_file("src/words") == " ".join(["done"] * 10)


def test_list_files_marks_directories_and_links_and_cuts_between_entries(sandbox: Sandbox) -> None:
    sandbox.run("ln -s greet.sh src/link; mkdir src/dir", check=True)
    user = User(sandbox)
    assert user.use("list_files", {"path": "/workspace/src"}) == "src/dir/\nsrc/greet.sh\nsrc/link -> greet.sh"
    assert user.use("list_files", {"path": "src/dir"}) == "(nothing)"
    short = User(sandbox, max_output=10)
    assert short.use("list_files", {"path": "src"}) == "src/dir/\n[2 more left out: list a directory below]"


def test_search_finds_by_extended_expressions_as_many_as_are_wanted(sandbox: Sandbox) -> None:
    files = {"src/one": "x1\ny2\nx3\n", "src/b/two": "x4\n", "src/.git/config": "x6\n"}
    sandbox.run("mkdir src/b src/.git", check=True)
    for path, content in files.items():
        sandbox.files.write_file(path, content)
    user = User(sandbox)
    found = user.use("search", {"pattern": "^x[0-9]+$"})
    assert sorted(found.split("\n")) == ["src/b/two:1:x4", "src/one:1:x1", "src/one:3:x3"]
    assert user.use("search", {"pattern": "x|y", "path": "src/one", "max_results": 2}) == (
        "src/one:1:x1\nsrc/one:2:y2\n[1 more matches]"
    )
    assert user.use("search", {"pattern": "s3cret"}) == "(no matches)"
    assert user.use("search", {"pattern": "x", "path": "nowhere"}) == 'error: "nowhere": it does not exist'
    assert user.use("search", {"pattern": "("}).startswith("error: grep: ")


def test_a_pattern_is_a_pattern_and_nothing_else(sandbox: Sandbox) -> None:
    user = User(sandbox)
    for hostile in ("$(touch src/owned)", "'; touch src/owned; '", "`touch src/owned`", "-f/etc/passwd", "--help"):
        user.use("search", {"pattern": hostile})
        user.use("search", {"pattern": "x", "path": hostile})
    assert sandbox.changes() == []


def test_search_looks_for_plain_text_where_there_is_no_grep(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one (two)\n", encoding="utf-8")
    (tmp_path / "b.bin").write_bytes(b"one\0")
    (tmp_path / ".env").write_text("one\n", encoding="utf-8")
    remark = "[there is no grep in the sandbox: this was searched for as plain text]"
    with Sandbox.from_local(tmp_path, permissions=RULES, endpoint=server.endpoint, env={"PATH": "/nowhere"}) as sandbox:
        user = User(sandbox)
        assert user.use("search", {"pattern": "one ("}) == f"a.txt:1:one (two)\n{remark}"
        assert user.use("search", {"pattern": "one .t"}) == f"(no matches)\n{remark}"
        assert user.use("search", {"pattern": "two", "path": "a.txt"}) == f"a.txt:1:one (two)\n{remark}"


def test_what_is_not_approved_is_not_done(sandbox: Sandbox) -> None:
    asked: List[ToolRequest] = []

    def approve(request: ToolRequest) -> bool:
        asked.append(request)
        return request.input.get("command") == "echo yes"

    user = User(sandbox, approve=approve)
    refused = "error: this call was not approved, and nothing was done"
    assert user.use("read_file", {"path": "README.md"}) == "# Greeter\n"
    assert user.use("shell", {"command": "echo yes", "workdir": None}) == "yes"
    assert user.use("write_file", {"path": "src/new", "content": "x"}) == refused
    assert user.use("write_file", {"path": "src/new"}) != refused
    assert asked == [
        ToolRequest("shell", {"command": "echo yes"}),
        ToolRequest("write_file", {"path": "src/new", "content": "x"}),
    ]
    assert User(sandbox, approve=lambda _: "yes").use("shell", {"command": "echo > src/owned"}) == refused
    assert sandbox.changes() == []


def test_what_the_approval_raises_is_raised(sandbox: Sandbox) -> None:
    def approve(request: ToolRequest) -> bool:
        raise LookupError(f"nobody is there for {request.tool}")

    with pytest.raises(LookupError, match="nobody is there for shell"):
        User(sandbox, approve=approve).use("shell", {"command": "true"})


def test_a_sandbox_that_does_not_run_is_no_output_of_a_tool(sandbox: Sandbox) -> None:
    sandbox.stop()
    with pytest.raises(SandboxNotRunningError):
        User(sandbox).use("shell", {"command": "true"})
