"""The directory that was uploaded."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Dict, Generator, Iterable, List, Mapping, Optional, Sequence, Tuple

from agentfense._directory import Directory
from agentfense._local_copy.decision import decide
from agentfense._local_copy.entry import read_entry, read_stamp
from agentfense._local_copy.hand import Hand, Installation, Rehearsal
from agentfense._local_copy.listing import paths_of
from agentfense._local_copy.path import names_of
from agentfense._local_copy.writing import Content, Steps, Writing
from agentfense.types import ApplyOutcome, Change, ChangeKind, EntryKind, ManifestEntry


@dataclass(frozen=True)
class _Verdict:
    """What came of one path. Without a reason, it was applied."""

    reason: str = ""
    conflict: bool = False


_APPLIED = _Verdict()
_NOT_AS_TOLD = _Verdict("the codebase is not as the server told")
#: What is left alone here is still applied there.
_HAS_CHANGE = "; the codebase has the change"


@dataclass(frozen=True)
class _Work:
    hand: Hand
    wanted: Mapping[str, ManifestEntry]
    known: Dict[str, ManifestEntry]
    #: To add to the reason why something was left alone.
    note: str


class LocalCopy:
    """It touches only what is as it was uploaded, goes through no symbolic link, and nothing outside is in reach
    whatever the server says.
    """

    def __init__(self, directory: str, uploaded: Iterable[ManifestEntry]) -> None:
        """The directory is absolute and real: no part of it is a link."""
        self._directory = directory
        #: As uploaded, or as last written here; by paths like "src/a.py".
        self._known = {entry.path: entry for entry in uploaded}

    def write(self, outcomes: Sequence[ApplyOutcome], entries: Mapping[str, ManifestEntry]) -> Writing:
        """Writes what was applied to the codebase, which has these entries at the paths of the changes.

        Each path is decided on its own: one that is left alone does not stop others.
        """
        return Writing(self._steps(outcomes, _Work(Hand(self._directory), entries, self._known, _HAS_CHANGE)))

    def rehearse(self, outcomes: Sequence[ApplyOutcome]) -> List[ApplyOutcome]:
        """What `write` would do after these changes.

        What the new content will be is not known, and nothing is touched.
        """
        planned = {entry.path: entry for entry in map(_planned_entry, (each.change for each in outcomes)) if entry}
        work = _Work(Rehearsal(self._directory), planned, dict(self._known), "")
        with Writing(self._steps(outcomes, work)) as writing:
            content = writing.next_content()
            assert content is None, "a rehearsal needs no content"
        return writing.outcomes

    def _steps(self, outcomes: Sequence[ApplyOutcome], work: _Work) -> Steps:
        try:
            return (yield from self._judge(outcomes, work))
        finally:
            work.hand.finish()

    def _judge(self, outcomes: Sequence[ApplyOutcome], work: _Work) -> Steps:
        changes = [outcome.change for outcome in outcomes if outcome.applied]
        staying = {paths_of(change)[0] for change in changes if change.kind is not ChangeKind.DELETED}
        verdicts: Dict[str, _Verdict] = {}
        for path in _in_order({path for change in changes for path in paths_of(change)}, work.wanted):
            wanted = work.wanted.get(path)
            # What is missing by mistake must not be taken for deleted.
            is_as_told = (path in staying) == (wanted is not None)
            verdicts[path] = (yield from self._attempt(path, wanted, work)) if is_as_told else _NOT_AS_TOLD
        return [_with_verdicts(outcome, verdicts, work.note) if outcome.applied else outcome for outcome in outcomes]

    def _attempt(self, path: str, wanted: Optional[ManifestEntry], work: _Work) -> Generator[Content, None, _Verdict]:
        try:
            return (yield from self._carry_out(path, wanted, work))
        except Exception as error:
            message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            return _Verdict(f"it could not be written here: {message}")

    def _carry_out(self, path: str, wanted: Optional[ManifestEntry], work: _Work) -> Generator[Content, None, _Verdict]:
        names = names_of(path)
        if names is None:
            return _Verdict("it is no path of this directory")
        if wanted is not None and _is_foreign_repository(names, work.known):
            return _Verdict("what belongs to Git is not written from a sandbox")
        *parents, name = names
        with ExitStack() as held:
            top = held.enter_context(Directory.open(self._directory))
            obstacle, parent = _go(top, parents, work)
            if obstacle is not None:
                return _Verdict(obstacle, conflict=True)
            if parent is not None:
                held.enter_context(parent)
            local = None if parent is None or work.hand.is_gone(path) else read_entry(parent, name)
            decision = decide(known=work.known.get(path), local=local, wanted=wanted)
            if decision.obstacle:
                return _Verdict(decision.obstacle, conflict=True)
            if decision.replace:

                def is_still(place: Directory) -> bool:
                    stamp = None if local is None else local.stamp
                    return self._leads_to(place, parents, work) and read_stamp(place, name) == stamp

                installation = Installation(path, top, parents, name, wanted, local, is_still)
                problem = yield from _replace(installation, parent, work)
                if problem is not None:
                    return _Verdict(problem, conflict=True)
            elif parent is not None and wanted is not None:
                work.hand.set_mode(parent, name, wanted)
        if wanted is None:
            work.known.pop(path, None)
        else:
            work.known[path] = wanted
        return _APPLIED

    def _leads_to(self, place: Directory, parents: Sequence[str], work: _Work) -> bool:
        """Whether the way to a directory still ends there."""
        with Directory.open(self._directory) as top:
            obstacle, again = _go(top, parents, work)
            if obstacle is not None or again is None:
                return False
            with again:
                return os.path.samestat(again.status("."), place.status("."))


def _go(top: Directory, parents: Sequence[str], work: _Work) -> Tuple[Optional[str], Optional[Directory]]:
    """Why nothing may be done below the directories on the way, or the last of them; neither where one is missing."""
    here = top.directory(".")
    for depth, name in enumerate(parents, 1):
        path = "/".join(parents[:depth])
        with here:
            if work.hand.will_be_directory(path):
                return None, None
            try:
                status = here.status(name)
            except FileNotFoundError:
                return None, None
            if not stat.S_ISDIR(status.st_mode):
                return f"{path} is not a directory here", None
            known = work.known.get(path)
            if known is None or known.kind is not EntryKind.DIRECTORY:
                return f"the directory {path} is here and was not uploaded", None
            here = here.directory(name)
    return None, here


def _replace(
    installation: Installation, parent: Optional[Directory], work: _Work
) -> Generator[Content, None, Optional[str]]:
    path, local, wanted = installation.path, installation.local, installation.wanted
    if parent is not None and local is not None and local.kind is EntryKind.DIRECTORY:
        with parent.directory(installation.name) as opened:
            is_empty = work.hand.is_empty(path, opened.names())
        if not is_empty:
            what = "the directory" if wanted is None else "a directory is here that"
            return f"{what} holds what the sandbox did not delete, or did not see"
    if wanted is not None:
        for made in work.hand.make_parents(installation.top, installation.parents):
            work.known[made] = ManifestEntry(made, EntryKind.DIRECTORY)
    return (yield from work.hand.install(installation))


def _in_order(paths: Iterable[str], wanted: Mapping[str, ManifestEntry]) -> List[str]:
    """What goes, from the deepest up; then what comes, from the top down: whatever order the server tells them in."""
    ordered = sorted(paths)
    going = [path for path in reversed(ordered) if path not in wanted]
    return going + [path for path in ordered if path in wanted]


def _planned_entry(change: Change) -> Optional[ManifestEntry]:
    """Before there is a version with the content: a hash that no file has, for it will be another one than before."""
    if change.kind is ChangeKind.DELETED:
        return None
    is_other = change.type not in (EntryKind.DIRECTORY, EntryKind.SYMLINK)
    return ManifestEntry(paths_of(change)[0], EntryKind.FILE if is_other else change.type)


def _with_verdicts(outcome: ApplyOutcome, verdicts: Mapping[str, _Verdict], note: str) -> ApplyOutcome:
    for path in paths_of(outcome.change):
        verdict = verdicts.get(path, _APPLIED)
        if verdict is _APPLIED:
            continue
        reason = verdict.reason if verdict is _NOT_AS_TOLD else verdict.reason + note
        return replace(outcome, applied=False, reason=reason, conflict=verdict.conflict)
    return outcome


def _is_foreign_repository(names: Sequence[str], known: Mapping[str, ManifestEntry]) -> bool:
    """Hooks and configuration in there are run by whoever uses Git next."""
    at = next((depth for depth, name in enumerate(names, 1) if name.lower() == ".git"), None)
    return at is not None and "/".join(names[:at]) not in known
