"""The kinds of blocks there are, what each needs and what it is to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union

from tests.samples.expectation import Opened, Outcome, Ran

Rule = Mapping[str, Any]


@dataclass(frozen=True)
class Script:
    """A program, or a part of one: runs as it stands, in a directory that has the sample project."""

    outcome: Outcome
    folder: str = "./project"
    # Files of the sample project that only this block needs.
    files: Mapping[str, str] = field(default_factory=dict)
    # What a part of a program presupposes.
    prelude: str = ""
    # What the block has in the place of the id of a codebase; a codebase of the sample project's files is made for it.
    codebase_placeholder: Optional[str] = None
    # A name that the documents once had for the package.
    alias: Optional[str] = None
    # A program that must be in the sandbox.
    needs_program: Optional[str] = None
    # Runs only against a server that was handed in, which has Docker.
    needs_docker: bool = False
    # What the comments state and nothing can look at, and why.
    unchecked: str = ""


@dataclass(frozen=True)
class RuleSet:
    """Rules that the block gives, by which of its statements they are, and the sandbox that is opened with them."""

    statement: int
    opened: Opened
    # Rules that the block leaves out; they come first.
    beside: Sequence[Rule] = ()


@dataclass(frozen=True)
class Rules:
    """Rules and what they mean: a sandbox on the sample project is opened with each set of them."""

    sets: Sequence[RuleSet]

    @property
    def outcome(self) -> Outcome:
        return Outcome(opened=[rules.opened for rules in self.sets])


@dataclass(frozen=True)
class Sitting:
    """The commands of a terminal block in one sandbox."""

    runs: Sequence[Ran]
    beside: Sequence[Rule] = ()


@dataclass(frozen=True)
class Terminal:
    """Rules and then `$ command` lines with their output: these run in a sandbox with those."""

    sittings: Sequence[Sitting]

    @property
    def outcome(self) -> Outcome:
        return Outcome(
            runs=[ran for sitting in self.sittings for ran in sitting.runs],
            opened=[Opened() for _ in self.sittings],
        )


@dataclass(frozen=True)
class InSandbox:
    """A program for the other side: lies in the sample project as sample.py, and run.py runs it inside of a sandbox."""

    permissions: Sequence[Rule]
    runs: Sequence[Ran]

    @property
    def outcome(self) -> Outcome:
        return Outcome(runs=self.runs)


@dataclass(frozen=True)
class PseudoCode:
    """Not a program at all: Python refuses the text with these words."""

    reason: str
    refusal: str


Sample = Union[Script, Rules, Terminal, InSandbox, PseudoCode]


@dataclass(frozen=True)
class Row:
    """One block of the documents."""

    document: str
    ordinal: int
    first_line: str
    sample: Sample

    @property
    def name(self) -> str:
        return f"{self.document}-{self.ordinal}"
