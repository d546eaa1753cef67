"""002: the first design, whose package had another name."""

from __future__ import annotations

from tests.samples.expectation import Matching, Opened, Outcome, Ran
from tests.samples.sample import Row, Script

# Python files and the directories on the way to some, and /docs; all else has no rule and is not there.
_LISTING = r"d\S+ .* \.\nd.* \.\.\nd.* app\n-r--r--r-- .* app\.py\nd.* docs\n-r--r--r-- .* heavy_task\.py\nd.* src\n"

FIRST_DESIGN = [
    Row(
        "002",
        1,
        "from sandbox_sdk import SandboxClient",
        Script(
            codebase_placeholder="cb_123",
            alias="sandbox_sdk",
            outcome=Outcome(
                runs=[Ran("ls -la /workspace", stdout=Matching(rf"\Atotal \d+\n{_LISTING}\Z"))],
                printed=Matching(rf"\Atotal \d+\n{_LISTING}\n\Z"),
                opened=[
                    Opened(
                        probes=[
                            Ran("echo more >> /workspace/docs/guide.md"),
                            Ran("echo x >> /workspace/app.py", stderr=Matching(r": Permission denied$"), exit_code=1),
                        ]
                    )
                ],
                left=(1, 1),
            ),
        ),
    ),
]
