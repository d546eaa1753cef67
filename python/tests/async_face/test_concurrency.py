"""Many commands at once, commands that are given up, and a server that dies under them."""

from __future__ import annotations

import time
from functools import partial
from typing import List, NamedTuple, Optional

from agentfense import AsyncSandbox, AsyncSandboxClient, ConnectionError
from agentfense._face.async_face import sleep
from tests.concurrency.async_face import RUNS, SANDBOXES, at_once, interrupted
from tests.server import Server

PATIENCE_SECONDS = 30


async def test_commands_at_once_all_end_right_and_each_sandbox_sees_only_its_own_files(server: Server) -> None:
    async with AsyncSandboxClient(server.endpoint) as client:
        codebase = await client.create_codebase("concurrency", "somebody")
        await client.upload_file(codebase.id, "shared.txt", b"shared\n")
        # Changes stay in their sandbox: with any other mode they would reach the codebase, and so the others.
        opening = partial(AsyncSandbox.from_codebase, codebase.id, "full-access", client=client, sync="manual")
        sandboxes = await at_once([opening] * SANDBOXES)
        begun = time.monotonic()
        outputs = await at_once([partial(write_own, sandboxes[run % SANDBOXES], run) for run in range(RUNS)])
        seconds = time.monotonic() - begun
        files = await at_once([partial(own_files, sandbox) for sandbox in sandboxes])
        await at_once([sandbox.destroy for sandbox in sandboxes])
        await client.delete_codebase(codebase.id)
    assert outputs == [f"shared\n{run}\n" for run in range(RUNS)]
    assert files == [sorted(f"{run}.txt" for run in range(first, RUNS, SANDBOXES)) for first in range(SANDBOXES)]
    # Each takes a second: one after the other they would take one per run.
    assert seconds < RUNS / 2


async def test_a_command_whose_caller_gives_up_is_killed(server: Server) -> None:
    async with AsyncSandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        command = "while :; do echo beat >> beats; sleep 0.1; done"
        await interrupted(partial(sandbox.run, command, timeout=300), after=partial(first_beat, sandbox))
        await silence(sandbox)


async def test_a_server_that_dies_is_a_lost_connection_for_every_caller_within_a_second() -> None:
    with Server.start() as server:
        client = AsyncSandboxClient(server.endpoint)
        sandbox = await AsyncSandbox.create(preset="full-access", client=client)
        *ends, killed = await at_once(
            [*[partial(end_of_run, sandbox, run) for run in range(20)], partial(kill_during, server, sandbox, 20)]
        )
        await client.close()
    assert [type(end.error) for end in ends] == [ConnectionError] * 20
    assert [end.at - killed.at for end in ends if end.at - killed.at > 1] == []


async def write_own(sandbox: AsyncSandbox, run: int) -> str:
    """What a command says that writes a file and reads it a second later, beside what all sandboxes have."""
    result = await sandbox.run(f"echo {run} > {run}.txt; sleep 1; cat shared.txt {run}.txt")
    return result.output


async def own_files(sandbox: AsyncSandbox) -> List[str]:
    return sorted(name for name in await sandbox.list_files() if name != "shared.txt")


async def first_beat(sandbox: AsyncSandbox) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while await beats(sandbox) == 0:
        assert time.monotonic() < deadline, "the command does not begin"
        await sleep(0.05)


async def silence(sandbox: AsyncSandbox) -> None:
    """Waits for a second without a beat, of which there would be ten."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    before, now = -1, await beats(sandbox)
    while before != now:
        assert time.monotonic() < deadline, "the command goes on"
        await sleep(1)
        before, now = now, await beats(sandbox)


async def beats(sandbox: AsyncSandbox) -> int:
    result = await sandbox.run("cat beats 2>/dev/null | wc -l")
    return int(result.stdout)


class End(NamedTuple):
    """When something was over, on the clock of this process, and the error it was over with."""

    at: float
    error: Optional[BaseException] = None


async def end_of_run(sandbox: AsyncSandbox, run: int) -> End:
    try:
        await sandbox.run(f"touch begun-{run}; sleep 600", timeout=590)
    except Exception as error:
        return End(time.monotonic(), error)
    return End(time.monotonic())


async def kill_during(server: Server, sandbox: AsyncSandbox, runs: int) -> End:
    """Kills the server when all of these runs are under way."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(await sandbox.list_files()) < runs:
        assert time.monotonic() < deadline, "the commands do not begin"
        await sleep(0.05)
    at = time.monotonic()
    server.kill()
    return End(at)
