import { EmbeddedEngine } from "./engine.ts";

// One engine costs a thread, a launcher and a watchdog; those who do not bring their own share one.
let shared: EmbeddedEngine | undefined;

/** The process's own engine, made at its first use, and anew after it was closed. */
export function sharedEngine(): EmbeddedEngine {
  if (shared === undefined || shared.isClosed) shared = EmbeddedEngine.lazily();
  return shared;
}

/** Ends the process's own engine now, with every sandbox in it, and not when the process ends. */
export async function closeEngine(): Promise<void> {
  await shared?.close();
}
