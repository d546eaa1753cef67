"""A directory of this machine that was uploaded, and takes back what a sandbox made of it.

The one who talks to the server fetches, and this writes. With `list_files` and `download` being whatever does that:

    paths = changed_paths(outcomes)
    listed = [info for step in plan_listing(paths) for info in list_files(step.path, step.recursive)]
    entries = wanted_entries(listed, paths)
    with copy.write(outcomes, entries) as writing:
        while (content := writing.next_content()) is not None:
            try:
                for piece in download(content.path):
                    content.write(piece)
            except SandboxError as error:
                content.fail(error)
    outcomes = writing.outcomes
"""

from __future__ import annotations

from agentfense._local_copy.listing import ListingStep, changed_paths, plan_listing, wanted_entries
from agentfense._local_copy.local_copy import LocalCopy
from agentfense._local_copy.writing import Content, Writing

__all__ = ["Content", "ListingStep", "LocalCopy", "Writing", "changed_paths", "plan_listing", "wanted_entries"]
