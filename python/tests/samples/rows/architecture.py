"""000: the architecture."""

from __future__ import annotations

from tests.samples.expectation import Decided, Opened, Outcome, Ran
from tests.samples.sample import Row, Rules, RuleSet, Script

ARCHITECTURE = [
    Row(
        "000",
        1,
        "from agentfense import Sandbox",
        Script(
            folder="./repo",
            outcome=Outcome(
                # credentials.py has one too, and the preset hides it.
                runs=[Ran("grep TODO *.py", stdout="one.py:# TODO: the first\ntwo.py:# TODO: the second\n")],
            ),
        ),
    ),
    Row(
        "000",
        2,
        "with sandbox.session() as session:",
        Script(
            prelude="from agentfense import Sandbox\nsandbox = Sandbox.from_local('./project')",
            outcome=Outcome(
                runs=[
                    Ran("cd /workspace/src"),
                    Ran("pwd", stdout="/workspace/src\n", stated="→ /workspace/src"),
                    Ran("export VAR=value"),
                    Ran("echo $VAR", stdout="value\n", stated="→ value"),
                ],
                left=(1, 1),
            ),
        ),
    ),
    Row(
        "000",
        3,
        "rules = [",
        Rules(
            [
                RuleSet(
                    0,
                    Opened(
                        explained={
                            "/secrets/public.key": Decided("read", "/secrets/public.key", ["/secrets/**", "**/*"])
                        },
                        probes=[Ran("cat /workspace/secrets/public.key", stdout="public\n")],
                    ),
                )
            ]
        ),
    ),
    Row(
        "000",
        4,
        "from agentfense import Sandbox",
        Script(
            folder="./repo",
            outcome=Outcome(
                runs=[Ran("cat /workspace/src/main.py", stdout="print('source')\n")],
                opened=[
                    Opened(
                        info={"runtime": "bwrap"},
                        # The third phase of the time line below the block.
                        probes=[
                            Ran(
                                "cat /workspace/secrets/.env",
                                stderr="cat: /workspace/secrets/.env: No such file or directory\n",
                                exit_code=1,
                            )
                        ],
                    )
                ],
            ),
        ),
    ),
    Row(
        "000",
        5,
        '{"pattern": "/configs/**", "permission": "view"}',
        Rules(
            [
                RuleSet(
                    0,
                    Opened(
                        # The behaviour below the block.
                        probes=[
                            Ran("ls /workspace/configs", stdout="api.yaml\ndb.yaml\n"),
                            Ran(
                                "cat /workspace/configs/api.yaml",
                                stderr="cat: /workspace/configs/api.yaml: Permission denied\n",
                                exit_code=1,
                            ),
                        ]
                    ),
                )
            ]
        ),
    ),
]
