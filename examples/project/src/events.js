/** Events arrive in any order; the latest is the one with the greatest time. */
// TODO: say which one wins when two have the same time
export function latestEvent(events) {
  return events.reduce((latest, event) => (latest === undefined || event.time > latest.time ? event : latest), undefined);
}
