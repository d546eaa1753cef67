"""What has to be known of a codebase before changes are written, and how to ask for it."""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Set

from agentfense.types import ApplyOutcome, Change, FileInfo, ManifestEntry

#: More directories than this are not asked for one by one.
_DIRECTORIES_AT_MOST = 32


class ListingStep(NamedTuple):
    """A directory of the codebase to list. One that is not there, or is none any more, has nothing in it."""

    path: str
    recursive: bool


def paths_of(change: Change) -> List[str]:
    """The paths of a change as the codebase has them, "src/a.py": the one that it is about first."""
    both = [change.path] if change.old_path == "" else [change.path, change.old_path]
    return [path[1:] if path.startswith("/") else path for path in both]


def changed_paths(outcomes: Iterable[ApplyOutcome]) -> Set[str]:
    """The paths of what was applied."""
    return {path for outcome in outcomes if outcome.applied for path in paths_of(outcome.change)}


def plan_listing(paths: Iterable[str]) -> List[ListingStep]:
    """The directories that these paths are in; all of the codebase when they are many."""
    parents = sorted({path.rpartition("/")[0] for path in paths})
    if len(parents) > _DIRECTORIES_AT_MOST:
        return [ListingStep("", True)]
    return [ListingStep(parent, False) for parent in parents]


def wanted_entries(infos: Iterable[FileInfo], paths: Set[str]) -> Dict[str, ManifestEntry]:
    """What the codebase has at these paths, by path."""
    return {
        info.path: ManifestEntry(info.path, info.kind, info.mode, info.size, info.sha256, info.target)
        for info in infos
        if info.path in paths
    }
