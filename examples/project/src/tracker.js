import { latestEvent } from "./events.js";

/** Where a parcel was last seen. */
export function whereIs(parcelId, events) {
  const event = latestEvent(events.filter((candidate) => candidate.parcelId === parcelId));
  return event ? `${parcelId}: ${event.place} at ${event.time}` : `${parcelId}: never seen`;
}
