"""A handle on a command that really runs."""

from __future__ import annotations

import gc
import hashlib
import threading
import time
from functools import partial
from typing import AsyncIterator, List, Optional

import pytest

from agentfense import (
    AsyncExecution,
    AsyncSandbox,
    ExitEvent,
    InvalidConfigurationError,
    SandboxError,
    SandboxNotRunningError,
)
from agentfense._face.async_face import sleep
from tests.concurrency.async_face import at_once, interrupted
from tests.server import Server
from tests.support.patience import AsyncPatience

MEGABYTE = 1024 * 1024
PATIENCE_SECONDS = 30
#: Beats into a file for as long as what it has started is alive.
BEATING = "echo beat > beats; (while :; do echo beat >> beats; sleep 0.1; done) & echo up; wait"


@pytest.fixture
async def sandbox(server: Server) -> AsyncIterator[AsyncSandbox]:
    async with AsyncSandbox.create(preset="full-access", sync="manual", endpoint=server.endpoint) as sandbox:
        yield sandbox


async def read_until(execution: AsyncExecution, wanted: str) -> str:
    """What it prints up to a text, which is then known to have arrived."""
    text = ""
    async for event in execution:
        assert not isinstance(event, ExitEvent), f"it ended without {wanted!r}: {text}"
        text += event.text
        if wanted in text:
            break
    return text


async def silence(sandbox: AsyncSandbox) -> None:
    """Waits for half a second without a beat, of which there would be five: the server hears of an end a bit later."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    before, now = "", "?"
    while before != now:
        assert time.monotonic() < deadline, "the command goes on"
        counted = await sandbox.run("wc -l < beats; sleep 0.5; wc -l < beats", check=True)
        before, now = counted.stdout.split()


async def test_output_arrives_while_it_runs_input_goes_in_and_the_end_is_known(sandbox: AsyncSandbox) -> None:
    execution = sandbox.exec_stream("while read line; do echo got $line; done; echo over >&2; exit 3")
    await execution.send_stdin("one\n")
    assert await read_until(execution, "one\n") == "got one\n"
    await execution.send_stdin(b"two\n")
    assert await read_until(execution, "two\n") == "got two\n"
    await execution.end_stdin()
    result = await execution.wait()
    assert (result.exit_code, result.stdout, result.stderr) == (3, "", "over\n")
    with pytest.raises(InvalidConfigurationError):
        await execution.send_stdin("three\n")


async def test_input_may_be_sent_while_somebody_else_reads(sandbox: AsyncSandbox) -> None:
    execution = sandbox.exec_stream("cat | sha256sum | cut -c1-64")

    async def send() -> None:
        for _ in range(8):
            await execution.send_stdin(b"x" * MEGABYTE)
        await execution.end_stdin()

    await at_once([execution.wait, send])
    result = await execution.wait()
    assert result.stdout == hashlib.sha256(b"x" * 8 * MEGABYTE).hexdigest() + "\n"


async def test_input_that_is_given_at_once_ends_by_itself_and_no_more_can_be_sent(sandbox: AsyncSandbox) -> None:
    execution = sandbox.exec_stream("cat", stdin="all of it")
    with pytest.raises(InvalidConfigurationError):
        await execution.send_stdin("x")
    assert (await execution.wait()).stdout == "all of it"


async def test_a_command_that_is_over_takes_no_input(sandbox: AsyncSandbox) -> None:
    execution = sandbox.exec_stream("true")
    await execution.wait()
    with pytest.raises(SandboxError) as raised:
        await execution.send_stdin("x")
    assert raised.value.code == "COMMAND_FAILED"


async def test_events_come_in_the_order_of_the_output(sandbox: AsyncSandbox) -> None:
    events: List[str] = []
    async for event in sandbox.exec_stream("echo 1; sleep 0.2; echo 2 >&2; sleep 0.2; echo 3; exit 4"):
        text = str(event.exit_code) if isinstance(event, ExitEvent) else event.text.strip()
        events.append(f"{event.kind} {text}")
    assert events == ["stdout 1", "stderr 2", "stdout 3", "exit 4"]


async def test_it_begins_before_anybody_reads(sandbox: AsyncSandbox) -> None:
    execution = sandbox.exec_stream("echo begun > begun; sleep 600")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "begun" not in await sandbox.list_files():
        assert time.monotonic() < deadline, "the command does not begin"
        await sleep(0.05)
    await execution.kill()


async def test_one_that_nobody_reads_is_held_up_and_goes_on_with_whoever_comes(sandbox: AsyncSandbox) -> None:
    execution = sandbox.exec_stream("head -c 30000000 /dev/zero; echo done > done")
    await sleep(1)
    assert "done" not in await sandbox.list_files()
    count = 0
    async for event in execution:
        count += 0 if isinstance(event, ExitEvent) else len(event.data)
    assert count == 30_000_000
    assert "done" in await sandbox.list_files()


async def test_wait_has_much_of_both_outputs(sandbox: AsyncSandbox) -> None:
    result = await sandbox.exec_stream("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo end").wait()
    assert (len(result.stdout_bytes), len(result.stderr_bytes), result.truncated) == (3_000_004, 3_000_000, False)


async def test_kill_ends_all_that_the_command_has_started_and_is_a_result(sandbox: AsyncSandbox) -> None:
    execution = sandbox.exec_stream(BEATING)
    await read_until(execution, "up\n")
    await execution.kill()
    await execution.kill()
    result = await execution.wait()
    assert (result.exit_code, result.signal, result.success) == (137, "SIGKILL", False)
    await silence(sandbox)


async def test_kill_is_an_end_for_whoever_waits(sandbox: AsyncSandbox) -> None:
    execution = sandbox.exec_stream("echo up; sleep 600", timeout=590)
    await read_until(execution, "up\n")

    async def kill() -> None:
        await sleep(0.2)
        await execution.kill()

    await at_once([execution.wait, kill])
    assert (await execution.wait()).exit_code == 137


async def test_the_end_of_its_block_ends_the_command(sandbox: AsyncSandbox) -> None:
    async with sandbox.exec_stream(BEATING) as execution:
        await read_until(execution, "up\n")
    await silence(sandbox)


@pytest.mark.parametrize("stdin", [None, ""], ids=["open input", "no input"])
async def test_one_that_is_forgotten_ends(sandbox: AsyncSandbox, stdin: Optional[str]) -> None:
    execution = sandbox.exec_stream(BEATING, stdin)
    await read_until(execution, "up\n")
    del execution
    gc.collect()
    await silence(sandbox)


async def test_whoever_is_interrupted_while_he_waits_ends_the_command(sandbox: AsyncSandbox) -> None:
    heard: List[str] = []
    # What is heard is heard by whoever waits.
    execution = sandbox.exec_stream(BEATING, on_stdout=heard.append)
    await interrupted(execution.wait, after=partial(AsyncPatience.until_heard, heard))
    await silence(sandbox)
    assert (await execution.wait()).exit_code == 137


async def test_run_with_a_callback_whose_caller_gives_up_is_killed(sandbox: AsyncSandbox) -> None:
    heard: List[str] = []

    work = partial(sandbox.run, BEATING, timeout=300, on_stdout=heard.append)
    await interrupted(work, after=partial(AsyncPatience.until_heard, heard))
    await silence(sandbox)


async def test_that_a_command_could_not_be_started_shows_in_its_handle(sandbox: AsyncSandbox) -> None:
    nowhere = sandbox.exec_stream("true", workdir="/no/such/directory")
    for ask in (nowhere.__anext__, nowhere.wait):
        with pytest.raises(InvalidConfigurationError) as raised:
            await ask()
        assert raised.value.code == "WORKDIR_UNUSABLE"
    await sandbox.stop()
    with pytest.raises(SandboxNotRunningError):
        await sandbox.exec_stream("true").wait()


async def test_a_timeout_is_a_result_with_what_there_was(sandbox: AsyncSandbox) -> None:
    result = await sandbox.exec_stream("echo begun; sleep 60", timeout=1).wait()
    assert (result.timed_out, result.success, result.stdout) == (True, False, "begun\n")


async def test_no_thread_stays_behind(sandbox: AsyncSandbox) -> None:
    before = threading.active_count()
    executions = [sandbox.exec_stream("cat") for _ in range(5)]
    for execution in executions[1:]:
        await execution.end_stdin()
        await execution.wait()
    await executions[0].kill()
    await AsyncPatience.until(lambda: threading.active_count() <= before)
