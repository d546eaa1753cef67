import net from "node:net";
import { afterAll, expect, vi } from "vitest";

// What each framework calls the switch of what it reports to its makers.
const SWITCHES = {
  LANGSMITH_TRACING: "false",
  LANGCHAIN_TRACING_V2: "false",
  MASTRA_TELEMETRY_DISABLED: "1",
  MASTRA_OFFLINE: "1",
  OPENAI_AGENTS_DISABLE_TRACING: "1",
};

/** Switches the reports of the frameworks off, and lets the file fail if anything here still connects to somebody. */
export function stayOffline(): void {
  for (const [name, value] of Object.entries(SWITCHES)) vi.stubEnv(name, value);
  const attempts: string[] = [];
  const spy = vi.spyOn(net.Socket.prototype, "connect").mockImplementation((...target: readonly unknown[]) => {
    attempts.push(JSON.stringify(target));
    throw new Error("tests of adapters are offline");
  });
  afterAll(() => {
    spy.mockRestore();
    vi.unstubAllEnvs();
    expect(attempts).toEqual([]);
  });
}
