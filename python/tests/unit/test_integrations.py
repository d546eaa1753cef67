"""The adapters where their frameworks are not."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import List

import pytest

FRAMEWORKS = {
    "langchain": ("langchain_core", "langchain-core", "langchain"),
    "openai_agents": ("agents", "openai-agents", "openai-agents"),
    "smolagents": ("smolagents", "smolagents", "smolagents"),
}


@pytest.mark.parametrize("adapter", FRAMEWORKS)
def test_an_adapter_says_which_extra_it_needs(adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, package, extra = FRAMEWORKS[adapter]
    for name in [name for name in sys.modules if name == module or name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"agentfense.integrations.{adapter}", raising=False)
    with pytest.raises(ImportError) as missing:
        importlib.import_module(f"agentfense.integrations.{adapter}")
    assert str(missing.value) == f'this adapter needs {package}: pip install "agentfense[{extra}]"'


def test_nothing_else_loads_a_framework() -> None:
    program = "import sys, agentfense.integrations.tools; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    loaded: List[str] = ran.stdout.split()
    assert "agentfense.integrations.tools" in loaded
    assert {name.split(".")[0] for name in loaded} & {module for module, _, _ in FRAMEWORKS.values()} == set()


ENVIRONMENT = {"PYTHONPATH": ":".join(sys.path)}
