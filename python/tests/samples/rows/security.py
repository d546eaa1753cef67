"""003: the security model."""

from __future__ import annotations

import re

from tests.samples.expectation import Decided, Matching, Opened, Outcome, Ran
from tests.samples.sample import InSandbox, PseudoCode, Row, Rules, RuleSet, Script, Sitting, Terminal

_READ_ALL = {"pattern": "**/*", "permission": "read"}

# As many processes as there may be, each of which does nothing; the command after this one needs room again.
_FORKS = """python3 -c '
import os, signal, time
made = []
try:
    while len(made) < 200:
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
        made.append(child)
except BlockingIOError:
    pass
print(len(made), flush=True)
for child in made:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
'"""


def _denied(path: str) -> Matching:
    """What bash says when it must not write; it says its own name as it was started, and the line of a script."""
    return Matching(rf"\A(/bin/)?bash: (line \d+: )?{re.escape(path)}: Permission denied\n\Z")


def _refused(command: str, path: str, stated: str = "") -> Ran:
    return Ran(command, stderr=_denied(path), exit_code=1, stated=stated or None)


_HIDDEN = [
    Ran(
        "cat /workspace/.env",
        stderr="cat: /workspace/.env: No such file or directory\n",
        exit_code=1,
        stated="cat: /workspace/.env: No such file or directory",
    ),
    Ran('[ -f /workspace/.env ] && echo "exists"', exit_code=1, stated="(无 - 文件测试返回 false)"),
]

SECURITY = [
    Row(
        "003",
        1,
        "# 传统方法(脆弱)",
        PseudoCode(
            reason="shows what others do, with a `return` outside of a function and a `user` that is nobody's",
            refusal="'return' outside function",
        ),
    ),
    Row(
        "003",
        2,
        "# AgentFense:无需检查",
        InSandbox(
            permissions=[
                _READ_ALL,
                {"pattern": "/metadata/**", "permission": "view"},
                {"pattern": "/secrets/**", "permission": "none"},
            ],
            runs=[
                Ran("python3 run.py /workspace/README.md", stdout="'read me\\n'\n"),
                Ran(
                    "python3 run.py /workspace/metadata/schema.json",
                    stderr=Matching(r"^PermissionError: \[Errno 13\] Permission denied: '/workspace/metadata/"),
                    exit_code=1,
                ),
                Ran(
                    "python3 run.py /workspace/secrets/token",
                    stderr=Matching(r"^FileNotFoundError: \[Errno 2\] No such file or directory: '/workspace/secrets/"),
                    exit_code=1,
                ),
            ],
        ),
    ),
    Row(
        "003",
        3,
        "permissions = [",
        Terminal(
            [
                # Alone they hide everything, as no rule shows anything.
                Sitting(
                    [
                        Ran(
                            "ls -la /workspace/",
                            stdout=Matching(r"\Atotal \d+\n(d.* \.\.?\n)*\Z"),
                            stated="(未列出 .env 文件)",
                        ),
                        *_HIDDEN,
                    ]
                ),
                Sitting(
                    [
                        Ran(
                            "ls -la /workspace/",
                            stdout=Matching(r"\A(?!(.|\n)*(\.env|secrets))(.|\n)* app\.py\n"),
                            stated="(未列出 .env 文件)",
                        ),
                        *_HIDDEN,
                    ],
                    beside=[_READ_ALL],
                ),
            ]
        ),
    ),
    Row(
        "003",
        4,
        "permissions = [",
        Terminal(
            [
                Sitting(
                    [
                        Ran(
                            "ls -lh /workspace/metadata/",
                            stdout=Matching(r"\Atotal .*\n.* 850 .* config\.yaml\n.* 1\.2K .* schema\.json\n\Z"),
                            stated="schema.json (1.2KB), config.yaml (850B)",
                        ),
                        Ran(
                            "cat /workspace/metadata/schema.json",
                            stderr="cat: /workspace/metadata/schema.json: Permission denied\n",
                            exit_code=1,
                            stated="cat: /workspace/metadata/schema.json: Permission denied",
                        ),
                    ]
                )
            ]
        ),
    ),
    Row(
        "003",
        5,
        "permissions = [",
        Terminal(
            [
                Sitting(
                    [
                        Ran("cat /workspace/app.py", stdout="print('app')\n", stated="(文件内容)"),
                        _refused(
                            'echo "malicious" >> /workspace/app.py',
                            "/workspace/app.py",
                            stated="bash: /workspace/app.py: Permission denied",
                        ),
                    ]
                )
            ]
        ),
    ),
    Row(
        "003",
        6,
        "permissions = [",
        Terminal(
            [
                Sitting(
                    [
                        Ran('echo "analysis complete" > /workspace/output/result.txt', stated="(成功)"),
                        _refused(
                            'echo "malicious" > /workspace/config.yaml',
                            "/workspace/config.yaml",
                            stated="bash: /workspace/config.yaml: Permission denied",
                        ),
                    ]
                )
            ]
        ),
    ),
    Row(
        "003",
        7,
        "rules = [",
        Rules(
            [
                RuleSet(
                    0,
                    Opened(
                        explained={
                            "/app/main.py": Decided("read", "**/*"),
                            "/secrets/private.key": Decided("none", "/secrets/**", ["**/*"]),
                            "/secrets/public.key": Decided("read", "/secrets/public.key", ["/secrets/**", "**/*"]),
                        }
                    ),
                )
            ]
        ),
    ),
    Row(
        "003",
        8,
        "# 好:从最小权限开始,添加所需内容",
        Rules(
            [
                RuleSet(
                    0,
                    Opened(
                        probes=[
                            Ran("ls -A /workspace", stdout="output\nsrc\n"),
                            Ran("cat /workspace/src/main.py", stdout="print('source')\n"),
                            _refused("echo x > /workspace/src/main.py", "/workspace/src/main.py"),
                            Ran("echo x > /workspace/output/x"),
                        ]
                    ),
                ),
                RuleSet(1, Opened(probes=[Ran("echo x > /workspace/src/main.py"), Ran("rm /workspace/.env")])),
            ]
        ),
    ),
    Row(
        "003",
        9,
        "# 确保即使其他规则匹配,密钥也被隐藏",
        Rules(
            [
                RuleSet(
                    0,
                    Opened(
                        probes=[
                            Ran("cat /workspace/README.md", stdout="read me\n"),
                            Ran(r"find /workspace -name '.env*' -o -name '*.key' -o -name '*.pem' -o -name secrets"),
                        ]
                    ),
                    # Other rules that match, and are even more specific.
                    beside=[
                        {"pattern": "/secrets/public.key", "permission": "read"},
                        {"pattern": "/deploy/", "permission": "write"},
                    ],
                )
            ]
        ),
    ),
    Row(
        "003",
        10,
        "from agentfense import extend_preset",
        Rules(
            [
                RuleSet(
                    0,
                    Opened(
                        probes=[
                            Ran("echo x > /workspace/logs/x; echo x > /workspace/output/x; echo x > /workspace/tmp/x"),
                            _refused("echo x > /workspace/README.md", "/workspace/README.md"),
                            Ran("cat /workspace/README.md", stdout="read me\n"),
                            Ran("find /workspace -name '.env*' -o -name '*.key' -o -name '*.pem' -o -name secrets"),
                        ]
                    ),
                )
            ]
        ),
    ),
    Row(
        "003",
        11,
        "from agentfense import Sandbox, ResourceLimits",
        Script(
            outcome=Outcome(
                runs=[
                    # The document has no such command, and neither has the sandbox.
                    Ran("untrusted_command", stderr=Matching(r": command not found\n\Z"), exit_code=127),
                ],
                opened=[
                    Opened(
                        info={
                            "resources.memory_bytes": 512 * 1024 * 1024,
                            "resources.pids_limit": 100,
                            "resources.cpu_quota": 50_000,
                        },
                        probes=[
                            Ran(_FORKS, stdout=Matching(r"\A[89]\d\n\Z")),
                            # Killed by its control group; where an ordinary user's server has none, refused.
                            Ran(
                                "python3 -c 'b\"x\" * 2**30' || echo too much",
                                stdout="too much\n",
                                stderr=Matching(r"Killed|MemoryError"),
                            ),
                        ],
                    )
                ],
            ),
        ),
    ),
    Row(
        "003",
        12,
        "# 问题:.git 可能包含敏感提交历史",
        Rules(
            [
                RuleSet(0, Opened(probes=[Ran("cat /workspace/.git/config", stdout="[core]\n")])),
                RuleSet(1, Opened(probes=[Ran("ls -A /workspace | grep git", exit_code=1)])),
            ]
        ),
    ),
    Row(
        "003",
        13,
        "# 错误:模式中的拼写错误(密钥仍然可见)",
        Rules(
            [
                RuleSet(
                    0, Opened(probes=[Ran("cat /workspace/secrets/token", stdout="private\n")]), beside=[_READ_ALL]
                ),
                RuleSet(
                    1,
                    Opened(
                        probes=[
                            Ran(
                                "ls /workspace/secrets",
                                stderr="ls: cannot access '/workspace/secrets': No such file or directory\n",
                                exit_code=2,
                            )
                        ]
                    ),
                    beside=[_READ_ALL],
                ),
            ]
        ),
    ),
    Row(
        "003",
        14,
        "# 危险:Agent 可以修改源代码",
        Rules(
            [
                RuleSet(0, Opened(probes=[Ran("echo x > /workspace/src/main.py")])),
                RuleSet(
                    1,
                    Opened(
                        probes=[
                            Ran("echo x > /workspace/output/x"),
                            _refused("echo x > /workspace/src/main.py", "/workspace/src/main.py"),
                        ]
                    ),
                    beside=[_READ_ALL],
                ),
                RuleSet(
                    2,
                    Opened(
                        probes=[
                            Ran("echo x > /workspace/tmp/x"),
                            _refused("echo x > /workspace/src/main.py", "/workspace/src/main.py"),
                        ]
                    ),
                    beside=[_READ_ALL],
                ),
            ]
        ),
    ),
]
