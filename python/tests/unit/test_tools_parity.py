"""The tools of this SDK against those of the TypeScript one: a model cannot tell them apart."""

from __future__ import annotations

import json
import subprocess
from typing import Any, List, Tuple, cast

import pytest

from agentfense._tools.declaration import DECLARATIONS
from agentfense._tools.failure import ToolFailure
from tests.server import REPOSITORY

MISFITS: List[Tuple[str, Any]] = [
    ("read_file", {}),
    ("read_file", {"path": None}),
    ("read_file", {"path": ""}),
    ("read_file", {"path": ["a"]}),
    ("read_file", {"path": {}}),
    ("read_file", {"path": True}),
    ("read_file", {"path": "a", "offset": 0}),
    ("read_file", {"path": "a", "offset": 1.5}),
    ("read_file", {"path": "a", "offset": "1"}),
    ("read_file", {"path": "a", "offset": True}),
    ("read_file", {"path": "a", "offset": 10**20}),
    ("read_file", {"path": "a", "offset": 2_000_000_000, "limit": 0}),
    ("list_files", {"recursive": 1}),
    ("shell", {"command": "a", "timeout": 5}),
    ("shell", {"timeout": 5, "x": 1, "y": None}),
    ("shell", "ls"),
    ("shell", [1]),
    ("shell", 3),
    ("shell", True),
    ("edit_file", {}),
    ("changes", {"ä": 1}),
]

PROGRAM = """
import { sandboxTools } from "./packages/sdk/src/adapters/tools.ts";
const tools = sandboxTools({});
const misfits = JSON.parse(process.argv[1]);
console.log(JSON.stringify({
  declarations: tools.map(({ name, description, inputSchema, readOnly }) => [name, description, inputSchema, readOnly]),
  complaints: await Promise.all(misfits.map(async ([name, input]) =>
    (await tools.find((tool) => tool.name === name).execute(input)).text)),
}));
"""


@pytest.fixture(scope="module")
def typescript() -> Any:
    """What the other SDK says."""
    node = REPOSITORY / "node_modules" / ".bin" / "node"
    command = [str(node), "--input-type=module", "--eval", PROGRAM, json.dumps(MISFITS)]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_the_declarations_are_the_same(typescript: Any) -> None:
    ours = [[name, tool.description, tool.input_schema, tool.read_only] for name, tool in DECLARATIONS.items()]
    assert ours == typescript["declarations"]


def test_the_same_input_is_refused_in_the_same_words(typescript: Any) -> None:
    assert [complaint(name, given) for name, given in MISFITS] == typescript["complaints"]


def complaint(name: str, given: object) -> str:
    with pytest.raises(ToolFailure) as failure:
        DECLARATIONS[cast("Any", name)].accept(given)
    return str(failure.value)
