"""The process that plays the samples, in a network of its own where localhost:9000 is the server.

    python -m tests.samples.stage SOCKET NAME…

SOCKET is the descriptor of a Unix socket: over it goes the listening socket first, and at the end the facts of each
sample of these names as JSON.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, Dict, Sequence

from tests.samples.documents import python_blocks
from tests.samples.network import Door, in_network_of_its_own, listen_inside
from tests.samples.rows import TABLE

_PYTHON = Path(__file__).resolve().parents[2]

# A whole run takes a tenth of this on a calm machine.
_PATIENCE_SECONDS = 300


def play_all(names: Sequence[str], endpoint: str) -> Dict[str, Any]:
    """Plays samples against a server; gives the facts of each, by its name."""
    host, _, port = endpoint.rpartition(":")
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", __name__, str(theirs.fileno()), *names]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AGENTFENSE_")}
    # What every sample of the earlier client meant without saying it.
    environment["AGENTFENSE_ENDPOINT"] = "localhost:9000"
    environment["PYTHONPATH"] = os.pathsep.join([str(_PYTHON), str(_PYTHON / "src")])
    with (
        ours,
        subprocess.Popen(
            in_network_of_its_own(command), cwd=_PYTHON, env=environment, pass_fds=[theirs.fileno()]
        ) as process,
    ):
        theirs.close()
        try:
            ours.settimeout(_PATIENCE_SECONDS)
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
            if not descriptors:
                raise RuntimeError("the process with the samples did not start")
            with Door(socket.socket(fileno=descriptors[0]), host, int(port)), ours.makefile("r") as answer:
                text = answer.read()
        finally:
            process.kill()
    if text == "":
        raise RuntimeError("the process with the samples ended before its time")
    facts: Dict[str, Any] = json.loads(text)
    return facts


def _play(names: Sequence[str]) -> Dict[str, Any]:
    from tests.samples.playing import Play, Skip

    blocks = {f"{block.document}-{block.ordinal}": block for block in python_blocks()}
    rows = {row.name: row for row in TABLE}
    facts: Dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="agentfense-samples-") as base:
        play = Play(Path(base))
        for name in names:
            try:
                facts[name] = play.facts(blocks[name], rows[name].sample)
            except Skip as reason:
                facts[name] = {"skipped": str(reason)}
            except Exception:
                facts[name] = {"error": traceback.format_exc()}
        os.chdir("/")
    return facts


def main() -> None:
    descriptor, *names = sys.argv[1:]
    with socket.socket(fileno=int(descriptor)) as outside:
        with listen_inside() as listener:
            socket.send_fds(outside, [b"\n"], [listener.fileno()])
        outside.sendall(json.dumps(_play(names)).encode())


if __name__ == "__main__":
    main()
