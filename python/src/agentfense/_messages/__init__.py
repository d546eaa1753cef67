"""Messages of the wire and what they mean here: one module for each subject, none of which waits for anything."""

from __future__ import annotations
