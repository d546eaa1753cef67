"""What Ctrl+C does to somebody who waits for a command."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from agentfense import SandboxClient
from tests.server import Server
from tests.support.patience import PATIENCE_SECONDS, Patience
from tests.support.processes import Sleeper

WAITING = {
    "for its result": "client.exec(sandbox, command, timeout=300)",
    "for its next event": "list(client.exec_stream(sandbox, command, timeout=300))",
}
PROGRAM = """
import sys
from agentfense import SandboxClient

endpoint, sandbox, command = sys.argv[1:]
with SandboxClient(endpoint) as client:
    try:
        {waiting}
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("waiting", sorted(WAITING))
def test_an_interrupt_kills_the_command_that_is_waited_for(waiting: str, server: Server) -> None:
    sleeper = Sleeper()
    program = PROGRAM.format(waiting=WAITING[waiting])
    with SandboxClient(server.endpoint) as client:
        codebase = client.create_codebase("project", "tester")
        sandbox = client.start_sandbox(client.create_sandbox(codebase.id, preset="full-access").id)
        arguments = [sys.executable, "-c", program, server.endpoint, sandbox.id, sleeper.command]
        environment = {"PYTHONPATH": ":".join(sys.path)}
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as waiter:
            Patience.until(sleeper.runs)
            waiter.send_signal(signal.SIGINT)
            output, _ = waiter.communicate(timeout=PATIENCE_SECONDS)
        Patience.until(lambda: not sleeper.runs())
        client.delete_codebase(codebase.id, force=True)
    assert (output, waiter.returncode) == ("interrupted\n", 0)
