"""The private server: found, started, shared, and gone without a trace."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Iterator, List

import grpc
import pytest

from agentfense import _server
from agentfense._server import process
from agentfense._server.program import find_program
from agentfense.exceptions import ConnectionError, InvalidConfigurationError
from tests.server import CLI, REPOSITORY

#: For what a loaded machine takes its time with.
PATIENCE_SECONDS = 60


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Everything a server leaves would be in here. `agentfense` on PATH is that of this repository."""
    # Not pytest's own directory, whose path is too long for a socket.
    top = Path(tempfile.mkdtemp(prefix="agentfense-private-test-"))
    node = REPOSITORY / "node_modules" / ".bin" / "node"
    script(top / "bin" / "agentfense", f'exec {node if node.exists() else "node"} {CLI} "$@"')
    (top / "home").mkdir()
    monkeypatch.setenv("PATH", f"{top / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(top / "home"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    for name in ("XDG_RUNTIME_DIR", "AGENTFENSE_COMMAND"):
        monkeypatch.delenv(name, raising=False)
    yield top / "home"
    shutil.rmtree(top)


def script(path: Path, line: str) -> Path:
    """A program that does this."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def command_of(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Has the private server be this, whatever arguments it gets."""
    monkeypatch.setenv("AGENTFENSE_COMMAND", shlex.join(["/bin/sh", "-c", line, "agentfense"]))


def answers(endpoint: str) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect_ex(endpoint[len("unix:") :]) == 0


def serves(endpoint: str) -> bool:
    """Whether gRPC gets an answer there."""
    with grpc.insecure_channel(endpoint) as channel:
        ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/sandbox.v1.SystemService/GetServerInfo")
        return bool(ask(b"", timeout=PATIENCE_SECONDS))


def server_pid(endpoint: str) -> int:
    """The process of a private server, which says so beside its socket."""
    owner = Path(endpoint[len("unix:") :]).parent / "owner.json"
    return int(json.loads(owner.read_text(encoding="utf-8"))["pid"])


def is_running(pid: int) -> bool:
    """A zombie, which is nobody's child any more and waits for init, is not."""
    tasks = Path(f"/proc/{pid}/task").glob("*/status")
    return any(not is_zombie(status) for status in tasks)


def is_zombie(status: Path) -> bool:
    try:
        return re.search(r"^State:\s+[ZX]", status.read_text(encoding="utf-8"), re.MULTILINE) is not None
    except OSError:
        return True


def wait_until(holds: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < ends_at, "it did not come true"
        time.sleep(0.02)


def entries(home: Path) -> List[str]:
    return sorted(re.sub(r"-[^-]+$", "", path.name) for path in home.iterdir())


def test_all_leases_share_one_server_which_goes_with_the_last(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor(3) as threads:
        first, *others = threads.map(lambda _: _server.lease(), range(3))
    endpoint = first.endpoint
    assert [lease.endpoint for lease in others] == [endpoint, endpoint]
    assert serves(endpoint)
    assert entries(home) == ["agentfense-private-socket", "agentfense-private-state"]
    pid = server_pid(endpoint)

    first.close()
    first.close()
    first.close()
    assert answers(endpoint)
    for lease in others:
        lease.close()
    assert not is_running(pid)
    assert entries(home) == []
    assert capfd.readouterr() == ("", "")


def test_a_server_that_died_is_followed_by_another(home: Path) -> None:
    first = _server.lease()
    os.kill(server_pid(first.endpoint), signal.SIGKILL)
    wait_until(lambda: not answers(first.endpoint))
    second = _server.lease()
    assert second.endpoint != first.endpoint
    # Which cleaned up after the first one.
    assert entries(home) == ["agentfense-private-socket", "agentfense-private-state"]
    first.close()
    assert answers(second.endpoint)
    second.close()
    assert entries(home) == []


KILLED = """
import os, time
from agentfense import _server

print(_server.lease().endpoint, flush=True)
copy = os.fork()
if copy > 0:
    print(copy, flush=True)
time.sleep(600)
"""


def test_a_killed_program_leaves_nothing_even_if_copies_of_it_live_on(home: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        pid = server_pid(program.stdout.readline().strip())
        copy = int(program.stdout.readline())
        try:
            assert is_running(pid)
            program.kill()
            wait_until(lambda: not is_running(pid))
            assert is_running(copy)
        finally:
            os.kill(copy, signal.SIGKILL)
    assert entries(home) == []


#: Since Python 3.12 a fork of a program with threads is a deprecation, and is all the same what some programs do.
FORKED = """
import os
from agentfense import _server

lease = _server.lease()
copy = os.fork()
if copy == 0:
    lease.close()
    print(_server.lease().endpoint != lease.endpoint, flush=True)
else:
    print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), os.path.exists(lease.endpoint[len("unix:"):]))
"""


def test_a_copy_has_a_server_of_its_own_and_both_go_when_their_programs_end(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-W", "error::ResourceWarning", "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.stdout, done.stderr) == ("True\n0 True\n", "")
    assert entries(home) == []


@pytest.fixture
def listener(home: Path) -> Iterator[Path]:
    """A socket of this user that takes connections, for programs that only say where they listen."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(home / "s"))
        one.listen()
        yield home / "s"


def test_what_it_prints_never_holds_it_up(monkeypatch: pytest.MonkeyPatch, listener: Path) -> None:
    command_of(monkeypatch, f"head -c 1000000 /dev/zero >&2; echo 'agentfense: gRPC on unix:{listener}, no REST'; cat")
    lease = _server.lease()
    assert lease.endpoint == f"unix:{listener}"
    lease.close()


def test_one_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch, home: Path, listener: Path) -> None:
    monkeypatch.setattr(process, "_STOP_SECONDS", 0.2)
    said = f"echo $$ > {home}/pid; echo 'agentfense: gRPC on unix:{listener}, no REST'"
    command_of(monkeypatch, f"trap '' TERM; {said}; while :; do sleep 0.05; done")
    lease = _server.lease()
    pid = int((home / "pid").read_text())
    assert is_running(pid)
    lease.close()
    assert not is_running(pid)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "echo 'no such option: --private' >&2; exit 2",
            r"` ended with exit code 2\nno such option: --private \(install the npm package",
        ),
        (
            "kill -KILL $$",
            r"` was killed by signal 9 \(install the npm package agentfense, as its README says, or name a server",
        ),
        (
            "exec >&-; echo waiting >&2; sleep 600",
            r"` does not say where it listens\nwaiting \(install the npm package",
        ),
    ],
)
def test_one_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch, line: str, message: str) -> None:
    command_of(monkeypatch, line)
    with pytest.raises(ConnectionError, match=r"^the private server did not start: ") as failure:
        _server.lease()
    assert re.search(message, str(failure.value)), str(failure.value)
    assert failure.value.code == "CONNECTION_FAILED"


def test_npx_that_has_no_such_package_is_not_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "npx", "#!/bin/sh\necho npm error code ENOTCACHED >&2\nexit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("AGENTFENSE_COMMAND", raising=False)
    with pytest.raises(ConnectionError, match="none in the node_modules of the working directory") as failure:
        _server.lease()
    assert "ENOTCACHED" not in str(failure.value)


def test_one_that_says_nothing_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_START_SECONDS", 0.2)
    command_of(monkeypatch, "sleep 600")
    with pytest.raises(ConnectionError, match="does not say where it listens"):
        _server.lease()


def test_a_program_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFENSE_COMMAND", "/nowhere/agentfense --x")
    with pytest.raises(ConnectionError, match="`/nowhere/agentfense --x serve --private` cannot be run: No such file"):
        _server.lease()


def test_the_program_is_the_one_named_else_the_one_on_path_else_what_npx_has(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError, match=r"there is no agentfense program .*\(install the npm package agentfense"):
        find_program({"PATH": str(tmp_path)})
    npx = script(tmp_path / "npx", "")
    assert find_program({"PATH": str(tmp_path)}) == [str(npx), "--no", "--offline", "--", "agentfense"]
    program = script(tmp_path / "agentfense", "")
    assert find_program({"PATH": str(tmp_path), "AGENTFENSE_COMMAND": " "}) == [str(program)]
    assert find_program({"AGENTFENSE_COMMAND": "node 'a b/cli.js'"}) == ["node", "a b/cli.js"]
    with pytest.raises(InvalidConfigurationError, match="AGENTFENSE_COMMAND is no command: No closing quotation"):
        find_program({"AGENTFENSE_COMMAND": "node 'cli.js"})
