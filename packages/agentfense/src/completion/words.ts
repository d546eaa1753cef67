import { listPresets } from "@agentfense/permission";

/** Options whose value is one of a few words. */
export function wordsFor(option: string): readonly string[] {
  return option === "--preset" ? listPresets().map(({ name }) => name) : (WORDS[option] ?? []);
}

const WORDS: Readonly<Record<string, readonly string[]>> = {
  "--runtime": ["bwrap", "docker"],
  "--network": ["none", "filtered", "private", "host"],
  "--apply": ["success", "always"],
  "--approve": ["ask", "never"],
  "--sync": ["on-exec", "manual", "never"],
  "--status": ["pending", "running", "paused", "stopped", "error"],
  "--role": ["admin", "user", "read-only"],
  "--log-level": ["debug", "info", "warn", "error", "fatal"],
  "--log-format": ["text", "json"],
};
