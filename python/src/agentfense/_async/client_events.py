"""The audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Iterable, List, Optional, Sequence, Tuple

from agentfense._async.client_base import AsyncClientPart, all_pages
from agentfense._async.client_stream import AsyncCallStream
from agentfense._connection.method import EventService
from agentfense._messages.events import audit_event_of
from agentfense._messages.numbers import count, page_size_of
from agentfense._messages.time import timestamp_message
from agentfense._wire.sandbox.v1 import event_pb2
from agentfense.types import AuditEvent

_EVENTS_A_PAGE = 1000


class AsyncEventMethods(AsyncClientPart):
    """Who did what, when, with what result. Without `types`, events of all types."""

    async def list_events(
        self,
        *,
        sandbox_id: Optional[str] = None,
        codebase_id: Optional[str] = None,
        owner_id: Optional[str] = None,
        types: Optional[Sequence[str]] = None,
        after: Optional[datetime] = None,
        before: Optional[datetime] = None,
        limit: Optional[int] = None,
    ) -> List[AuditEvent]:
        """Oldest first, no more than the limit.

        Args:
            sandbox_id: Of this sandbox only.
            codebase_id: Of this codebase only.
            owner_id: Of this owner only.
            types: Of any of these types: sandbox_created, command_executed, permission_denied …
            after: From this moment on.
            before: Up to this moment, exclusively.
            limit: How many at most.
        """
        page_size = _EVENTS_A_PAGE if limit is None else min(page_size_of(limit), _EVENTS_A_PAGE)

        async def fetch(token: str) -> Tuple[Iterable[AuditEvent], str]:
            request = event_pb2.ListEventsRequest(
                sandbox_id=sandbox_id or "",
                codebase_id=codebase_id or "",
                owner_id=owner_id or "",
                types=types or (),
                after=None if after is None else timestamp_message(after),
                before=None if before is None else timestamp_message(before),
                page_size=page_size,
                page_token=token,
            )
            page = await self._calls.unary(EventService.list_events, request)
            return map(audit_event_of, page.events), page.next_page_token

        return await all_pages(fetch, limit)

    def watch_events(
        self,
        *,
        sandbox_id: Optional[str] = None,
        codebase_id: Optional[str] = None,
        owner_id: Optional[str] = None,
        types: Optional[Sequence[str]] = None,
        after_sequence: Optional[int] = None,
    ) -> AsyncCallStream[AuditEvent]:
        """What happens from the first read on, or from a sequence on. Ends only with the caller or the server."""
        request = event_pb2.WatchEventsRequest(
            sandbox_id=sandbox_id or "",
            codebase_id=codebase_id or "",
            owner_id=owner_id or "",
            types=types or (),
            after_sequence=None if after_sequence is None else count(after_sequence, "after_sequence"),
        )
        return AsyncCallStream(self._calls.server_stream(EventService.watch_events, request), audit_event_of)
