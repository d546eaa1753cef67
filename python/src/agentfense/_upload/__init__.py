"""What of a directory is uploaded: walked, sifted by ignore files, hashed. Local files only."""

from __future__ import annotations

from agentfense._upload.content import read_content
from agentfense._upload.entry import Entry
from agentfense._upload.select import Selection, select_entries

__all__ = ["Entry", "Selection", "read_content", "select_entries"]
