"""001: the core concepts."""

from __future__ import annotations

from tests.samples.expectation import Decided, Matching, Opened, Outcome, Ran
from tests.samples.sample import Row, Rules, RuleSet, Script

_SANDBOX = "from agentfense import Sandbox\nsandbox = Sandbox.from_local('./project')"
_LIMITS = {"resources.memory_bytes": 512 * 1024 * 1024, "resources.cpu_quota": 50_000, "resources.pids_limit": 100}

# What agent-safe shows of ./project: everything but secrets.
_VISIBLE = """\
README.md
app
app.py
config.yaml
configs
deploy
docs
heavy_task.py
logs
metadata
output
src
tmp
"""

# The default preset makes /output and /tmp writable; the sample writes a file beside them.
_WRITABLE_OUTPUT = "version: 1\npreset: agent-safe\npermissions:\n  - { pattern: /output.txt, permission: write }\n"


def _written(content: str) -> Opened:
    return Opened(probes=[Ran("cat /workspace/output.txt", stdout=content)], codebase={"output.txt": None})


CONCEPTS = [
    Row(
        "001",
        1,
        "from agentfense import SandboxClient",
        Script(
            outcome=Outcome(
                printed="/app.py (13 bytes)\n/config.yaml (12 bytes)\nprint('v1.0')\n",
                opened=[],
            ),
        ),
    ),
    Row(
        "001",
        2,
        "from agentfense import Sandbox",
        Script(
            folder="./my-project",
            # Nothing left: the codebase is deleted where the block says so.
            outcome=Outcome(runs=[Ran("ls /workspace", stdout="README.md\nsrc\n")]),
        ),
    ),
    Row(
        "001",
        3,
        "from agentfense import Sandbox, RuntimeType, ResourceLimits",
        Script(
            needs_docker=True,
            outcome=Outcome(
                runs=[Ran("python heavy_task.py", stdout="45\n")],
                opened=[Opened(info={"runtime": "docker", "image": "python:3.11-slim", **_LIMITS})],
            ),
        ),
    ),
    Row(
        "001",
        4,
        "from agentfense import SandboxClient",
        Script(
            folder="./my-project",
            codebase_placeholder="cb_xxx",
            outcome=Outcome(
                runs=[Ran("ls /workspace", stdout="README.md\nsrc\n")],
                printed="README.md\nsrc\n\n",
                opened=[],
                left=(0, 1),
                events=[
                    "sandbox_created",
                    "sandbox_started",
                    "command_executed",
                    "sandbox_stopped",
                    "sandbox_destroyed",
                ],
            ),
        ),
    ),
    Row(
        "001",
        5,
        "permissions = [",
        Rules(
            [
                RuleSet(
                    0,
                    Opened(
                        explained={
                            "/secrets/private.key": Decided("none", "/secrets/**", ["**/*"]),
                            "/secrets/public.key": Decided("read", "/secrets/public.key", ["/secrets/**", "**/*"]),
                            "/app/main.py": Decided("read", "**/*"),
                        },
                        probes=[Ran("ls /workspace/secrets", stdout="public.key\n")],
                    ),
                )
            ]
        ),
    ),
    Row(
        "001",
        6,
        "from agentfense import Sandbox",
        Script(
            outcome=Outcome(
                runs=[
                    Ran("cat /workspace/README.md", stdout="read me\n", stated="✅"),
                    Ran("echo result > /workspace/output/log.txt", stated="✅"),
                    Ran("ls /workspace/secrets/", stdout="public.key\n", stated="仅 public.key(没有 private.key)"),
                    Ran("cat /workspace/secrets/public.key", stdout="public\n", stated="✅"),
                ],
                opened=[Opened(probes=[Ran("cat /workspace/output/log.txt", stdout="result\n")])],
            ),
        ),
    ),
    Row(
        "001",
        7,
        "# 每个命令在新 shell 中运行(状态丢失)",
        Script(
            prelude=_SANDBOX,
            outcome=Outcome(
                runs=[
                    Ran("cd /workspace/src"),
                    Ran("pwd", stdout="/workspace\n", stated="输出:/workspace(不是 /workspace/src)"),
                ],
                left=(1, 1),
            ),
        ),
    ),
    Row(
        "001",
        8,
        "# 命令在同一个 shell 中运行(状态保留)",
        Script(
            prelude=_SANDBOX,
            outcome=Outcome(
                runs=[Ran("cd /workspace/src"), Ran("pwd", stdout="/workspace/src\n")],
                printed="/workspace/src\n\n",
                left=(1, 1),
            ),
        ),
    ),
    Row(
        "001",
        9,
        "from agentfense import Sandbox",
        Script(
            folder="./python-app",
            outcome=Outcome(
                runs=[
                    Ran("cd /workspace"),
                    Ran("export DEBUG=1"),
                    Ran("source venv/bin/activate"),
                    Ran(
                        "pip install -r requirements.txt",
                        stdout=Matching(r"\A(Requirement already satisfied: .* in (/workspace|\.)/venv/lib/.*\n)+\Z"),
                    ),
                    Ran("pytest tests/", stdout=Matching(r"^=+ 1 passed.* =+\n\Z")),
                ],
                printed=Matching(r"^=+ 1 passed.* =+\n\n\Z"),
            ),
        ),
    ),
    Row(
        "001",
        10,
        "client = SandboxClient()",
        Script(
            folder="./my-project",
            prelude="from agentfense import Sandbox, SandboxClient\nsandbox = Sandbox.from_local('./my-project')",
            outcome=Outcome(
                runs=[Ran("cd /workspace"), Ran("ls", stdout="README.md\nsrc\n")],
                left=(1, 1),
                events=[
                    "sandbox_created",
                    "sandbox_started",
                    "session_created",
                    "command_executed",
                    "command_executed",
                    "session_closed",
                    "session_duration",
                ],
            ),
        ),
    ),
    Row(
        "001",
        11,
        "from agentfense import Sandbox",
        Script(
            outcome=Outcome(runs=[Ran("ls", stdout=_VISIBLE)]),
        ),
    ),
    Row(
        "001",
        12,
        "from agentfense import extend_preset",
        Script(
            prelude="from agentfense import Sandbox",
            outcome=Outcome(
                runs=[Ran("echo log > /workspace/logs/app.log", stated="✅")],
                opened=[
                    Opened(
                        probes=[Ran("cat /workspace/logs/app.log", stdout="log\n")],
                        # Written beside the additions, readable in spite of the preset.
                        explained={"/.git/config": Decided("read", "**/.git/**", ["**/.git/**", "**/*"])},
                    )
                ],
            ),
        ),
    ),
    Row(
        "001",
        13,
        "from agentfense import register_preset",
        Script(
            folder="./app",
            prelude="from agentfense import Sandbox",
            needs_program="npm",
            outcome=Outcome(
                runs=[Ran("npm run build", stdout=Matching(r"^> mkdir -p build dist"))],
                opened=[
                    Opened(
                        # Neither node_modules nor .env.
                        probes=[Ran("cat /workspace/dist/list.txt", stdout="build\ndist\npackage.json\n")],
                        explained={"/build/app.js": Decided("write", "/build/**", ["**/*"])},
                    )
                ],
            ),
        ),
    ),
    Row(
        "001",
        14,
        "from agentfense import Sandbox",
        Script(
            files={".agentfense.yaml": _WRITABLE_OUTPUT},
            outcome=Outcome(
                runs=[
                    Ran("echo A > /workspace/output.txt"),
                    Ran("echo B > /workspace/output.txt"),
                ],
                opened=[_written("A\n"), _written("B\n")],
            ),
            unchecked=(
                "that the codebase has B in the end: from_local makes a codebase for each sandbox, writes to it only "
                "when asked (apply) and deletes it with the sandbox. test_last_writer.py shows it for a codebase that "
                "two sandboxes do share."
            ),
        ),
    ),
    Row(
        "001",
        15,
        "# 选项 1:使用只读 preset",
        Script(
            prelude="from agentfense import Sandbox",
            outcome=Outcome(
                opened=[
                    Opened(
                        # The comment where the block does nothing: every write fails, and is denied.
                        probes=[
                            Ran("echo x > /workspace/README.md", stderr=Matching(r": Permission denied$"), exit_code=1),
                            Ran("echo x > /workspace/new.txt", stderr=Matching(r": Permission denied$"), exit_code=1),
                            Ran("echo x > /workspace/output/x", stderr=Matching(r": Permission denied$"), exit_code=1),
                            Ran("mkdir /workspace/new", stderr=Matching(r": Permission denied$"), exit_code=1),
                            Ran("rm -f /workspace/README.md", stderr=Matching(r": Permission denied$"), exit_code=1),
                        ]
                    )
                ]
            ),
            unchecked="the second way, sync_on_completion=false, is a setting of the server and no part of the block",
        ),
    ),
]
