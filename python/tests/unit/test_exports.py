"""What `import agentfense` offers."""

from __future__ import annotations

import inspect
import json
import re
from enum import Enum
from types import ModuleType
from typing import Iterator, List, Set

import pytest

import agentfense
from agentfense import exceptions, presets, types
from tests.server import REPOSITORY

CLASSES = [value for name, value in vars(agentfense).items() if inspect.isclass(value) and name in agentfense.__all__]


def own_names(module: ModuleType) -> Set[str]:
    """The public names that a module defines, and not those that it imports."""
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    aliases = re.findall(r"^(\w+) = (?:Union|Callable)\[", inspect.getsource(module), re.MULTILINE)
    return {name for name in {*own, *aliases} if not name.startswith("_")}


@pytest.mark.parametrize("module", [types, presets], ids=lambda module: module.__name__)
def test_everything_public_of_a_module_is_offered(module: ModuleType) -> None:
    assert own_names(module) - set(agentfense.__all__) == set()


def test_every_exception_is_offered() -> None:
    classes = {name: value for name, value in vars(exceptions).items() if inspect.isclass(value)}
    raised = {name for name, value in classes.items() if issubclass(value, exceptions.SandboxError)}
    assert len(raised) > 15
    assert raised - set(agentfense.__all__) == set()


def test_every_name_that_is_offered_is_there_and_has_its_twin() -> None:
    assert [name for name in agentfense.__all__ if not hasattr(agentfense, name)] == []
    asynchronous = {name for name in agentfense.__all__ if name.startswith("Async")}
    assert asynchronous == {
        "AsyncCodeContext",
        "AsyncExecution",
        "AsyncFileWatch",
        "AsyncPortConnection",
        "AsyncSandbox",
        "AsyncSandboxClient",
        "AsyncSandboxFiles",
        "AsyncSandboxPermissions",
        "AsyncSandboxProcess",
        "AsyncSandboxPort",
        "AsyncSession",
        "AsyncTerminal",
    }
    assert {name[len("Async") :] for name in asynchronous} - set(agentfense.__all__) == set()


def undocumented(cls: type) -> Iterator[str]:
    if not inspect.getdoc(cls):
        yield cls.__name__
    for name, member in inspect.getmembers(cls):
        is_ours = (getattr(member, "__module__", None) or "").startswith("agentfense") or isinstance(member, property)
        if is_ours and not name.startswith("_") and not inspect.getdoc(member):
            yield f"{cls.__name__}.{name}"


def test_everything_that_is_offered_says_what_it_is() -> None:
    classes: List[type] = [cls for cls in CLASSES if not issubclass(cls, Enum)]
    assert len(classes) > 60
    assert [problem for cls in classes for problem in undocumented(cls)] == []


def test_the_version_is_that_of_the_whole_product() -> None:
    workspace = json.loads((REPOSITORY / "package.json").read_text(encoding="utf-8"))
    assert workspace["version"] == agentfense.__version__
