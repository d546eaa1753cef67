import { CLI, TestServer } from "../../test/support/server.ts";
import { run } from "../client.ts";

/** A server that refuses nobody for being too busy: what it can do is the question. */
export function startServer(directory: string): Promise<TestServer> {
  const limits = { requests_per_second: 0, concurrent_calls: 0 };
  return TestServer.start({ directory, settings: { limits, runtime: { default_timeout: "2m" } } });
}

/** The real command line, against a server; its output as JSON. */
export async function agentfense(
  server: TestServer,
  args: readonly string[],
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const argv = [process.execPath, CLI, ...args, "--endpoint", server.grpc, "--json"];
  return JSON.parse(await run(argv, { pinned: false }, signal)) as Record<string, unknown>;
}

/** How late the API thread's timers were since this was asked last, milliseconds. */
export async function eventLoopLag(server: TestServer): Promise<{ readonly p99: number; readonly max: number }> {
  const text = await (await fetch(`${server.http}/metrics`)).text();
  const quantile = (name: string): number => {
    const [, seconds] =
      text.match(new RegExp(`^agentfense_event_loop_lag_seconds\\{quantile="${name}"\\} (\\S+)$`, "m")) ?? [];
    return Number(seconds) * 1000;
  };
  return { p99: quantile("0.99"), max: quantile("1") };
}
