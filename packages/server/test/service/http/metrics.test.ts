import { expect, test, vi } from "vitest";
import { Counter, exposition, Histogram } from "../../../src/service/metrics/exposition.ts";
import { LoopLag } from "../../../src/service/metrics/loop-lag.ts";
import { Metrics } from "../../../src/service/metrics/metrics.ts";
import { grpcClient, openTestService, unary } from "./fixture.ts";

test("tells what was observed and what the sources say", async () => {
  using metrics = new Metrics({
    sandboxCounts: async () => ({ running: 3, stopped: 1 }),
    counters: () => ({ fuseOperations: { lookup: 1200, read: 7 }, denials: 5 }),
    deltaBytes: () => 4096,
  });
  metrics.exec(12, "exited");
  metrics.exec(40_000, "timed_out");
  metrics.sync("written", { conflicts: 2 });
  metrics.sync("nothing");
  metrics.start(90, true);
  metrics.rpc("sandbox.v1.SandboxService.Exec", "OK", 3);
  for (const text of [await metrics.text(), await metrics.text()]) {
    for (const line of [
      'agentfense_sandboxes{state="running"} 3',
      'agentfense_sandboxes{state="stopped"} 1',
      'agentfense_fuse_operations_total{operation="lookup"} 1200',
      "agentfense_denials_total 5",
      "agentfense_delta_bytes 4096",
      'agentfense_execs_total{outcome="exited"} 1',
      'agentfense_exec_duration_seconds_bucket{le="0.025"} 1',
      "agentfense_exec_duration_seconds_sum 40.012",
      'agentfense_sync_total{result="written"} 1',
      "agentfense_sync_conflicts_total 2",
      'agentfense_rpc_duration_seconds_count{method="sandbox.v1.SandboxService.Exec",code="OK"} 1',
    ]) {
      expect(text.split("\n")).toContain(line);
    }
    expect(text).toMatch(/agentfense_event_loop_lag_seconds\{quantile="0.99"\} [\d.e-]+\n/);
    expect(text).toMatch(/agentfense_process_memory_bytes\{kind="rss"\} \d+\n/);
  }
});

test("writes what a scraper can read: cumulative buckets, series that start at zero, and values of labels escaped", async () => {
  const seconds = new Histogram("seconds", "Time", { bounds: [0.5, 1, 2], labelled: false });
  for (const value of [0.5, 0.6, 1.5, 7]) seconds.observe(value);
  const things = new Counter("things_total", "Things", { labelled: false });
  const named = new Counter("named_total", "Things by name", { labelled: true });
  named.add({ name: 'a "b"\\\n' }, 2);
  expect(await exposition([seconds, things, named])).toBe(`# HELP seconds Time
# TYPE seconds histogram
seconds_bucket{le="0.5"} 1
seconds_bucket{le="1"} 2
seconds_bucket{le="2"} 3
seconds_bucket{le="+Inf"} 4
seconds_sum 9.6
seconds_count 4

# HELP things_total Things
# TYPE things_total counter
things_total 0

# HELP named_total Things by name
# TYPE named_total counter
named_total{name="a \\"b\\"\\\\\\n"} 2
`);
});

test("two of them share nothing", async () => {
  using first = new Metrics();
  using second = new Metrics();
  first.exec(1, "exited");
  expect(await second.text()).not.toContain('outcome="exited"');
});

test("counts calls of every door by method and code", async () => {
  await using open = await openTestService();
  using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
  await unary(client, "GetServerInfo");
  await unary(client, "ListKeys");
  await fetch(`http://${open.http}/v1/server`);
  const text = await (await fetch(`http://${open.http}/metrics`)).text();
  expect(text).toContain(
    'agentfense_rpc_duration_seconds_count{method="sandbox.v1.SystemService.GetServerInfo",code="OK"} 2',
  );
  expect(text).toContain(
    'agentfense_rpc_duration_seconds_count{method="sandbox.v1.SystemService.ListKeys",code="UNIMPLEMENTED"} 1',
  );
});

test("calls that are refused count too, without a trace of who called", async () => {
  await using open = await openTestService({ keys: "required" });
  using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
  await unary(client, "GetServerInfo", {}, { authorization: "Bearer af_wrong" });
  const text = await open.service.metrics.text();
  expect(text).toContain('{method="sandbox.v1.SystemService.GetServerInfo",code="UNAUTHENTICATED"} 1');
  expect(text).not.toMatch(/af_|alice/);
});

test("a listener of their own has metrics and health and nothing else, and the HTTP port has them no more", async () => {
  await using open = await openTestService({ keys: "required", metrics: { address: "127.0.0.1:0" } });
  const at = `http://${open.service.metricsAddress}`;
  const metrics = await fetch(`${at}/metrics`);
  expect(metrics.headers.get("content-type")).toContain("text/plain");
  expect(await metrics.text()).toContain("agentfense_rpc_duration_seconds");
  expect((await fetch(`${at}/healthz`)).status).toBe(200);
  for (const path of ["/v1/server", "/openapi.json", "/sandbox.v1.SystemService/GetServerInfo"]) {
    expect((await fetch(`${at}${path}`)).status).toBe(404);
  }
  expect((await fetch(`http://${open.http}/metrics`)).status).toBe(404);
});

test("from another machine there are none on the HTTP port", async () => {
  const { networkInterfaces } = await import("node:os");
  const address = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === "IPv4" && !each.internal)?.address;
  if (address === undefined) {
    console.log("skipped: this machine has no address besides loopback");
    return;
  }
  await using open = await openTestService({ keys: "required", http: { address: "0.0.0.0:0" } });
  const port = open.http.split(":")[1];
  expect((await fetch(`http://${address}:${port}/healthz`)).status).toBe(200);
  expect((await fetch(`http://${address}:${port}/metrics`)).status).toBe(404);
  expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200);
});

test("lag is what timers were late while calls ran; without calls nothing ticks, and a pause is no lag", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  try {
    let nowMs = 0;
    using lag = new LoopLag(() => nowMs);
    const tick = (afterMs: number): void => {
      nowMs += afterMs;
      vi.advanceTimersByTime(20);
    };
    expect([lag.take(), vi.getTimerCount()]).toEqual([{ "0.5": 0, "0.99": 0, "1": 0 }, 0]);
    lag.workBegins();
    for (const afterMs of [20, 20, 320]) tick(afterMs);
    lag.workEnds();
    expect(lag.take()["1"]).toBeCloseTo(0.3, 2);
    vi.advanceTimersByTime(1_000);
    expect(vi.getTimerCount()).toBe(0);
    nowMs += 60_000;
    lag.workBegins();
    tick(20);
    expect(lag.take()["1"]).toBeCloseTo(0, 6);
  } finally {
    vi.useRealTimers();
  }
});
