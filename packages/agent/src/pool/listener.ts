/** Tells a listener. That it throws is its own affair: it is warned of, and disturbs nothing. */
export function tellListener<E>(listener: ((event: E) => void) | undefined, event: E): void {
  try {
    listener?.(event);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    process.emitWarning(`a listener threw: ${problem}`, { type: "AgentFenseWarning", code: "AGENTFENSE_LISTENER" });
  }
}
