"""A real server in a process of its own, as `agentfense serve` starts it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional

REPOSITORY = Path(__file__).parents[2]
CLI = REPOSITORY / "packages" / "agentfense" / "src" / "cli.ts"
READY_SECONDS = 30
LISTENING = re.compile(r"gRPC on ([^,\s]+)")
Settings = Mapping[str, Mapping[str, object]]


class Server:
    """On a free port of loopback, with a directory of its own for everything it keeps."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._output: List[str] = []
        self._listening = threading.Event()
        # Reads for as long as it runs: a pipe that nobody reads stops who writes.
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @classmethod
    @contextmanager
    def start(cls, settings: Optional[Settings] = None) -> Iterator[Server]:
        """A server that listens, until the end of the block. The settings are sections of its configuration file."""
        directory = Path(tempfile.mkdtemp(prefix="agentfense-server-"))
        try:
            with cls._run(_configured(directory, settings or {})) as server:
                yield server
        finally:
            shutil.rmtree(directory)

    @classmethod
    @contextmanager
    def _run(cls, configuration: Path) -> Iterator[Server]:
        command = [_node(), str(CLI), "serve", "--config", str(configuration)]
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "NODE_COMPILE_CACHE") if name in os.environ}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True
        ) as process:
            server = cls(process)
            try:
                server._await_listening()
                yield server
            finally:
                process.terminate()
                server._reader.join()

    @property
    def endpoint(self) -> str:
        """Where gRPC listens: "127.0.0.1:45678"."""
        found = LISTENING.search(self.output)
        assert found is not None
        return found.group(1)

    @property
    def output(self) -> str:
        """Everything it printed so far."""
        return "".join(self._output)

    def kill(self) -> None:
        """Ends it at once (SIGKILL), and returns when it is over."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._output.append(line)
            if LISTENING.search(line):
                self._listening.set()
        self._listening.set()

    def _await_listening(self) -> None:
        self._listening.wait(READY_SECONDS)
        if LISTENING.search(self.output) is None:
            raise RuntimeError(f"the server does not listen:\n{self.output}")


def _node() -> str:
    """The Node.js of the workspace, which runs TypeScript."""
    ours = REPOSITORY / "node_modules" / ".bin" / "node"
    return str(ours) if ours.exists() else "node"


def _configured(directory: Path, settings: Settings) -> Path:
    sections: Dict[str, Mapping[str, object]] = {
        "server": {"grpc_addr": "127.0.0.1:0", "http_addr": ""},
        "storage": {
            "codebase_path": str(directory / "codebases"),
            "mount_path": str(directory / "mounts"),
            "db_path": str(directory / "metadata.db"),
        },
        "sandbox": {"max_per_user": 1000},
        "runtime": {"networks": ["none", "filtered"]},
    }
    merged = {name: {**sections.get(name, {}), **settings.get(name, {})} for name in {**sections, **settings}}
    file = directory / "agentfense.yaml"
    file.write_text(json.dumps(merged), encoding="utf-8")  # JSON is YAML
    return file
