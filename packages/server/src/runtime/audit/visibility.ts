import { type Caller, maySee } from "../caller.ts";
import type { EventQuery, EventRecord } from "../store/store.ts";
import type { EventFilter } from "./api.ts";

export type EventSelection = Pick<EventQuery, "ownerId" | "sandboxId" | "codebaseId" | "types">;

/** What of the filtered events the caller may see; undefined: nothing at all. */
export function visibleEvents(caller: Caller, filter: EventFilter): EventSelection | undefined {
  const ownerId = filter.ownerId === "" ? caller.ownerId : filter.ownerId;
  if (ownerId !== undefined && !maySee(caller, ownerId)) return undefined;
  const { sandboxId, codebaseId, types } = filter;
  return {
    ownerId,
    sandboxId: sandboxId || undefined,
    codebaseId: codebaseId || undefined,
    types: types.length === 0 ? undefined : types,
  };
}

/** The same question that the store answers by query. */
export function isSelected(selection: EventSelection, event: EventRecord): boolean {
  const { ownerId, sandboxId, codebaseId, types } = selection;
  return (
    (ownerId === undefined || ownerId === event.ownerId) &&
    (sandboxId === undefined || sandboxId === event.sandboxId) &&
    (codebaseId === undefined || codebaseId === event.codebaseId) &&
    (types === undefined || types.includes(event.type))
  );
}
