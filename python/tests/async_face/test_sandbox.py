"""A sandbox and what can be done with it."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import AsyncIterator, List

import pytest

from agentfense import (
    AsyncSandbox,
    CommandExecutionError,
    CommandTimeoutError,
    InvalidConfigurationError,
    RuntimeType,
    SandboxNotRunningError,
    SandboxStatus,
    SyncMode,
)
from tests.server import Server

FILES = {"package.json": '{\n  "name": "parcels"\n}\n', "src/events.js": "// events\n", "secrets/signing.key": "secret"}
RULES = [{"pattern": "/src/**", "permission": "write"}]


@pytest.fixture
async def sandbox(server: Server, tmp_path: Path) -> AsyncIterator[AsyncSandbox]:
    project = tmp_path / "parcels"
    for path, content in FILES.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(content)
    async with AsyncSandbox.from_local(project, "agent-safe", RULES, endpoint=server.endpoint) as sandbox:
        yield sandbox


async def test_it_knows_what_it_is(sandbox: AsyncSandbox) -> None:
    assert (sandbox.status, sandbox.runtime) == (SandboxStatus.RUNNING, RuntimeType.BWRAP)
    assert (sandbox.id, sandbox.codebase_id) == (sandbox.info.id, sandbox.info.codebase_id)
    assert sandbox.info.sync is SyncMode.MANUAL
    assert sandbox.codebase is not None
    assert (sandbox.codebase.name, sandbox.codebase.file_count) == ("parcels", 3)
    before = sandbox.info
    assert await sandbox.refresh() is sandbox
    assert sandbox.info == before
    assert repr(sandbox) == f"<{type(sandbox).__name__} {sandbox.id} running>"


async def test_run_gives_a_result_whatever_the_exit_code(sandbox: AsyncSandbox) -> None:
    result = await sandbox.run("head -1 package.json; ls secrets; echo bad >&2; exit 3")
    assert (result.exit_code, result.success, result.stdout, result.timed_out) == (3, False, "{\n", False)
    assert result.stderr.endswith("bad\n")
    assert (await sandbox.run(["printf", "%s|", "$HOME", "a b"])).stdout == "$HOME|a b|"
    assert (await sandbox.run("cat; echo $A; pwd", stdin="in\n", env={"A": "1"}, workdir="src")).stdout == (
        "in\n1\n/workspace/src\n"
    )


async def test_check_and_raise_on_error_make_it_an_error_with_the_result(sandbox: AsyncSandbox) -> None:
    for run in (partial(sandbox.run, check=True), partial(sandbox.run, raise_on_error=True)):
        with pytest.raises(CommandExecutionError) as raised:
            await run("echo out; exit 4")
        assert (raised.value.exit_code, raised.value.stdout) == (4, "out\n")
    with pytest.raises(CommandExecutionError):
        await sandbox.exec("exit 4", check=True)
    assert (await sandbox.exec("cat", "input", None, None, timedelta(seconds=20))).stdout == "input"


async def test_run_with_callbacks_has_the_same_result(sandbox: AsyncSandbox) -> None:
    heard: List[str] = []
    result = await sandbox.run(
        "echo one; echo two >&2; cat; exit 5", stdin="three\n", on_stdout=heard.append, on_stderr=heard.append
    )
    assert (result.exit_code, result.stdout, result.stderr) == (5, "one\nthree\n", "two\n")
    assert sorted("".join(heard).split("\n")) == ["", "one", "three", "two"]
    with pytest.raises(CommandExecutionError):
        await sandbox.run("exit 6", check=True, on_stdout=heard.append)
    # It has no input unless there is one, and does not wait for any.
    assert (await sandbox.run("cat; echo done", on_stdout=heard.append)).stdout == "done\n"


async def test_a_run_out_of_time_is_a_result_with_what_there_was(sandbox: AsyncSandbox) -> None:
    result = await sandbox.run("echo begun; sleep 60", timeout=1)
    assert (result.timed_out, result.success, result.stdout) == (True, False, "begun\n")
    with pytest.raises(CommandTimeoutError) as raised:
        await sandbox.run("echo begun; sleep 60", timeout=timedelta(seconds=1), check=True)
    assert (raised.value.result.timed_out, raised.value.stdout) == (True, "begun\n")
    for nothing in (0, -1, timedelta(0)):
        with pytest.raises(InvalidConfigurationError, match="timeout"):
            await sandbox.run("true", timeout=nothing)


async def test_changes_their_diff_and_discarding_them(sandbox: AsyncSandbox) -> None:
    await sandbox.run("echo '// new' > src/new.js; echo '// more' >> src/events.js; printf '\\0' > src/blob")
    changes = await sandbox.changes()
    assert [f"{change.kind} {change.path}" for change in changes] == [
        "added /src/blob",
        "modified /src/events.js",
        "added /src/new.js",
    ]
    blob, events, new = await sandbox.diff()
    assert blob.binary
    assert blob.unified.endswith("\nBinary files /dev/null and b/src/blob differ\n")
    assert "\n+// more\n" in events.unified
    assert "\n+// new\n" in new.unified
    assert [diff.change.path for diff in await sandbox.diff(["src/new.js"])] == ["/src/new.js"]
    assert [change.path for change in await sandbox.discard(["/src/new.js"])] == ["/src/new.js"]
    assert len(await sandbox.discard()) == 2
    assert await sandbox.changes() == []


async def test_stop_and_start_as_often_as_one_likes(sandbox: AsyncSandbox) -> None:
    await sandbox.run("echo kept > src/kept.txt")
    await sandbox.stop()
    await sandbox.stop()
    assert sandbox.status is SandboxStatus.STOPPED
    with pytest.raises(SandboxNotRunningError):
        await sandbox.run("true")
    assert [change.path for change in await sandbox.changes()] == ["/src/kept.txt"]
    await sandbox.start()
    await sandbox.start()
    assert sandbox.status is SandboxStatus.RUNNING
    assert (await sandbox.run("cat src/kept.txt")).stdout == "kept\n"


async def test_snapshots_to_go_back_to_and_forks_that_go_their_own_way(sandbox: AsyncSandbox) -> None:
    await sandbox.run("echo base > src/plan")
    base = await sandbox.snapshot("base")
    assert (base.sandbox_id, base.codebase_id, base.label) == (sandbox.id, sandbox.codebase_id, "base")
    first, second = await sandbox.fork(
        count=2, env={"STAGE": "try"}, permissions=[{"pattern": "**", "permission": "write"}]
    )
    async with first, second:
        assert (
            await first.run("echo $STAGE >> src/plan; cat src/plan secrets/signing.key")
        ).stdout == "base\ntry\nsecret"
        assert (await second.run("cat src/plan")).stdout == "base\n"
    await sandbox.run("echo later > src/plan")
    await sandbox.restore(base.id, processes="refuse")
    assert (await sandbox.run("cat src/plan")).stdout == "base\n"
    async with await AsyncSandbox.from_snapshot(base.id, client=sandbox.client) as again:
        assert (await again.run("cat src/plan; cat secrets/signing.key")).stdout == "base\n"
    assert [snapshot.label for snapshot in await sandbox.snapshots()] == ["base"]
    await sandbox.delete_snapshot(base.id)
    assert await sandbox.snapshots() == []
