"""The cases that every language runs (test/contract/cases); test/contract/case.ts says what their words mean."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import List, Mapping, Optional, Sequence, Type, TypeVar

from agentfense._project.yaml_text import parse_yaml

CASES = Path(__file__).parents[3] / "test" / "contract" / "cases"
PLACES = {"embedded", "remote", "mock", "python"}
# This SDK talks to a server, as TypeScript does in its world "remote".
HERE = ("remote", "python")


@dataclass(frozen=True)
class Step:
    do: str
    args: Sequence[object] = ()
    on: Optional[str] = None
    as_: Optional[str] = None
    expect: object = None
    error: object = None
    except_: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    topic: str
    title: str
    files: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    opening: Optional[Mapping[str, object]] = None
    steps: Optional[Sequence[Step]] = None
    except_: Mapping[str, str] = field(default_factory=dict)


def load_cases() -> List[Case]:
    """All cases, in the order of their files."""
    return [
        parse_case(file.stem, raw)
        for file in sorted(CASES.glob("*.yaml"))
        for raw in parse_yaml(file.read_text(encoding="utf-8")).value
    ]


def parse_case(topic: str, raw: Mapping[str, object]) -> Case:
    """One case of a file; a mistake in it is a ValueError."""
    place = f"{topic}: {raw.get('title')}"
    steps = raw.get("steps")
    if isinstance(steps, list):
        steps = [_record(Step, place, step) for step in steps]
        if any(step.expect is not None and step.error is not None for step in steps):
            raise ValueError(f"{place}: expect and error in a step")
        raw = {**raw, "steps": steps}
    case = _record(Case, place, {**raw, "topic": topic})
    if (case.opening is None) == (case.steps is None):
        raise ValueError(f"{place}: either opening or steps")
    return case


def reason_against(one: Case | Step) -> Optional[str]:
    """Why this is not run from here, if it is not."""
    return next((one.except_[place] for place in HERE if place in one.except_), None)


T = TypeVar("T", Case, Step)


def _record(kind: Type[T], place: str, raw: Mapping[str, object]) -> T:
    """A misspelt key would make a case that proves less than it says."""
    names = {each.name.rstrip("_"): each.name for each in fields(kind)}
    unknown = [key for key in raw if key not in names]
    if unknown:
        raise ValueError(f"{place}: {', '.join(unknown)} mean nothing")
    made = kind(**{names[key]: value for key, value in raw.items()})  # type: ignore[arg-type]
    strangers = set(made.except_) - PLACES
    if strangers:
        raise ValueError(f"{place}: {', '.join(sorted(strangers))} mean nothing")
    return made
