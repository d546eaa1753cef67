/** Tells all of them. One that throws is loud, and keeps nothing from the others or from who tells. */
export function tellAll<Event>(listeners: Iterable<(event: Event) => void>, event: Event): void {
  for (const listener of [...listeners]) {
    try {
      listener(event);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
