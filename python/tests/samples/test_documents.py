"""Every Python block of the owner's documents runs as it stands, with the results that its comments state."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Optional, Tuple, Type, TypeVar

import pytest
from typing_extensions import TypeGuard

from tests.samples.documents import python_blocks, split_transcript, stated_levels
from tests.samples.expectation import Outcome, every_run
from tests.samples.rows import TABLE
from tests.samples.sample import PseudoCode, Row, Rules, Script, Terminal
from tests.samples.stage import play_all
from tests.server import Server

# Set by test/samples/docker.test.ts, which starts a Docker engine and a server that uses it.
ENDPOINT_WITH_DOCKER = os.environ.get("AGENTFENSE_SAMPLES_ENDPOINT")

Kind = TypeVar("Kind")
_BLOCKS = {f"{block.document}-{block.ordinal}": block for block in python_blocks()}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server of these tests alone: they count what is on it."""
    if ENDPOINT_WITH_DOCKER is not None:
        yield ENDPOINT_WITH_DOCKER
        return
    with Server.start() as server:
        yield server.endpoint


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, endpoint: str) -> Dict[str, Any]:
    """The facts of all samples that this run of the tests wants to know, by their names."""
    chosen = {item.callspec.id for item in request.session.items if is_sample(item)}
    return play_all([row.name for row in TABLE if row.name in chosen and reason_against(row) is None], endpoint)


def test_the_table_has_a_row_for_every_block() -> None:
    expected = [(block.document, block.ordinal, block.first_line) for block in python_blocks()]
    assert [(row.document, row.ordinal, row.first_line) for row in TABLE] == expected


@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
def test_sample(row: Row, played: Dict[str, Any]) -> None:
    reason = reason_against(row)
    if reason is not None:
        pytest.skip(reason)
    facts = played[row.name]
    if "skipped" in facts:
        pytest.skip(facts["skipped"])
    assert "error" not in facts, facts["error"]
    if isinstance(row.sample, PseudoCode):
        assert facts == {"refusal": row.sample.refusal}
    else:
        assert facts == row.sample.outcome.facts()


def test_rows_have_the_commands_of_terminal_blocks_and_what_these_say_of_the_output() -> None:
    stated = {name: split_transcript(_BLOCKS[name].text).commands for name, _ in samples_of(Terminal)}
    assert len(stated) == 4
    for name, terminal in samples_of(Terminal):
        for sitting in terminal.sittings:
            assert [(ran.command, ran.stated) for ran in sitting.runs] == stated[name], name


def test_rows_have_the_levels_that_blocks_state() -> None:
    stated = {name: levels for name, _ in samples_of(Rules) if (levels := stated_levels(_BLOCKS[name].text))}
    assert len(stated) == 3
    assert {name: levels_of(rules.outcome) for name, rules in samples_of(Rules) if name in stated} == stated


def test_what_rows_call_stated_stands_beside_the_command_in_the_block() -> None:
    stated = [(name, ran) for name, script in samples_of(Script) for ran in every_run(script.outcome) if ran.stated]
    for name, ran in stated:
        lines = _BLOCKS[name].text.split("\n")
        assert any(f'"{ran.command}"' in line and str(ran.stated) in line for line in lines), (name, ran)


def samples_of(kind: Type[Kind]) -> List[Tuple[str, Kind]]:
    return [(row.name, row.sample) for row in TABLE if isinstance(row.sample, kind)]


def is_sample(item: pytest.Item) -> TypeGuard[pytest.Function]:
    return isinstance(item, pytest.Function) and item.originalname == test_sample.__name__


def reason_against(row: Row) -> Optional[str]:
    if isinstance(row.sample, Script) and row.sample.needs_docker and ENDPOINT_WITH_DOCKER is None:
        return "runs from test/samples/docker.test.ts, which has a Docker engine"
    return None


def levels_of(outcome: Outcome) -> List[Tuple[str, str]]:
    return [(path, decided.permission) for opened in outcome.opened for path, decided in opened.explained.items()]
