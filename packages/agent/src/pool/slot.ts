/**
 * A place for an instance; there are never more of them than `max`.
 *
 *     creating → idle ⇄ checking
 *                idle → busy → resetting → idle
 *     any of them → destroying → gone
 *
 * Only an idle one is ever lent to a session.
 */
export type SlotState<T> =
  | { readonly name: "creating"; readonly ending: AbortController }
  | { readonly name: "idle"; readonly instance: T; readonly sinceMs: number; readonly checkedAtMs: number }
  | { readonly name: "checking" | "busy" | "resetting" | "destroying"; readonly instance: T };

export interface Slot<T> {
  state: SlotState<T>;
}

export interface Idle<T> {
  readonly slot: Slot<T>;
  readonly state: Extract<SlotState<T>, { readonly name: "idle" }>;
}

export function idleAmong<T>(slots: Iterable<Slot<T>>): Idle<T>[] {
  return [...slots].flatMap((slot) => (slot.state.name === "idle" ? [{ slot, state: slot.state }] : []));
}
