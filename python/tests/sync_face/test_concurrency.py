# Generated from tests/async_face/test_concurrency.py by scripts/generate_sync.py: change it there.
"""Many commands at once, commands that are given up, and a server that dies under them."""

from __future__ import annotations

import time
from functools import partial
from typing import List, NamedTuple, Optional

from agentfense import ConnectionError, Sandbox, SandboxClient
from agentfense._face.sync_face import sleep
from tests.concurrency.sync_face import RUNS, SANDBOXES, at_once, interrupted
from tests.server import Server

PATIENCE_SECONDS = 30


def test_commands_at_once_all_end_right_and_each_sandbox_sees_only_its_own_files(server: Server) -> None:
    with SandboxClient(server.endpoint) as client:
        codebase = client.create_codebase("concurrency", "somebody")
        client.upload_file(codebase.id, "shared.txt", b"shared\n")
        # Changes stay in their sandbox: with any other mode they would reach the codebase, and so the others.
        opening = partial(Sandbox.from_codebase, codebase.id, "full-access", client=client, sync="manual")
        sandboxes = at_once([opening] * SANDBOXES)
        begun = time.monotonic()
        outputs = at_once([partial(write_own, sandboxes[run % SANDBOXES], run) for run in range(RUNS)])
        seconds = time.monotonic() - begun
        files = at_once([partial(own_files, sandbox) for sandbox in sandboxes])
        at_once([sandbox.destroy for sandbox in sandboxes])
        client.delete_codebase(codebase.id)
    assert outputs == [f"shared\n{run}\n" for run in range(RUNS)]
    assert files == [sorted(f"{run}.txt" for run in range(first, RUNS, SANDBOXES)) for first in range(SANDBOXES)]
    # Each takes a second: one after the other they would take one per run.
    assert seconds < RUNS / 2


def test_a_command_whose_caller_gives_up_is_killed(server: Server) -> None:
    with Sandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        command = "while :; do echo beat >> beats; sleep 0.1; done"
        interrupted(partial(sandbox.run, command, timeout=300), after=partial(first_beat, sandbox))
        silence(sandbox)


def test_a_server_that_dies_is_a_lost_connection_for_every_caller_within_a_second() -> None:
    with Server.start() as server:
        client = SandboxClient(server.endpoint)
        sandbox = Sandbox.create(preset="full-access", client=client)
        *ends, killed = at_once(
            [*[partial(end_of_run, sandbox, run) for run in range(20)], partial(kill_during, server, sandbox, 20)]
        )
        client.close()
    assert [type(end.error) for end in ends] == [ConnectionError] * 20
    assert [end.at - killed.at for end in ends if end.at - killed.at > 1] == []


def write_own(sandbox: Sandbox, run: int) -> str:
    """What a command says that writes a file and reads it a second later, beside what all sandboxes have."""
    result = sandbox.run(f"echo {run} > {run}.txt; sleep 1; cat shared.txt {run}.txt")
    return result.output


def own_files(sandbox: Sandbox) -> List[str]:
    return sorted(name for name in sandbox.list_files() if name != "shared.txt")


def first_beat(sandbox: Sandbox) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while beats(sandbox) == 0:
        assert time.monotonic() < deadline, "the command does not begin"
        sleep(0.05)


def silence(sandbox: Sandbox) -> None:
    """Waits for a second without a beat, of which there would be ten."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    before, now = -1, beats(sandbox)
    while before != now:
        assert time.monotonic() < deadline, "the command goes on"
        sleep(1)
        before, now = now, beats(sandbox)


def beats(sandbox: Sandbox) -> int:
    result = sandbox.run("cat beats 2>/dev/null | wc -l")
    return int(result.stdout)


class End(NamedTuple):
    """When something was over, on the clock of this process, and the error it was over with."""

    at: float
    error: Optional[BaseException] = None


def end_of_run(sandbox: Sandbox, run: int) -> End:
    try:
        sandbox.run(f"touch begun-{run}; sleep 600", timeout=590)
    except Exception as error:
        return End(time.monotonic(), error)
    return End(time.monotonic())


def kill_during(server: Server, sandbox: Sandbox, runs: int) -> End:
    """Kills the server when all of these runs are under way."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(sandbox.list_files()) < runs:
        assert time.monotonic() < deadline, "the commands do not begin"
        sleep(0.05)
    at = time.monotonic()
    server.kill()
    return End(at)
