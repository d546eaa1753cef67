// Measures sandboxes that differ in nothing but their network, and prints what it found as JSON; see networks.ts. It runs on a machine
// whose only neighbour is the internet of internet-process.ts.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type BoxedWorkspace, networkRules, openIsolation, type SandboxSpec } from "@agentfense/server/isolation";
import { median, timed } from "../sample.ts";
import type { NetworkCosts, NetworkRow } from "./networks.ts";

const [directory = "", sizes = ""] = process.argv.slice(2);
const { bytes, requests, starts, runs } = JSON.parse(sizes) as Record<"bytes" | "requests" | "starts" | "runs", number>;
const CONNECTIONS = 16;
const MS_PER_TICK = 10;

// Without a route to everywhere pasta does not begin.
execFileSync("ip", ["route", "add", "default", "via", "93.184.216.1", "dev", "wan", "onlink"]);
const project = join(directory, "project");
mkdirSync(project);
cpSync(join(directory, "ca.pem"), join(project, "ca.pem"));
cpSync(join(import.meta.dirname, "../clients/requests.ts"), join(project, "requests.ts"));
cpSync(process.execPath, join(project, "node"));

const SECRET = {
  name: "TOKEN",
  hosts: ["secret.test"],
  place: { kind: "bearer" },
  value: "a-secret-of-some-length",
} as const;
const NETWORKS = {
  host: { network: "host" },
  private: { network: "private" },
  filtered: {
    network: "filtered",
    networkRules: networkRules({ allow: ["passed.test", { host: "opened.test", methods: ["GET"] }, "secret.test"] }),
    secrets: [SECRET],
  },
} satisfies Record<string, Partial<SandboxSpec>>;

/** Where a row is measured: in which box, and with which host. */
const WAYS = [
  { label: "host", network: "host", host: "passed.test" },
  { label: "private", network: "private", host: "passed.test" },
  { label: "filtered", network: "filtered", host: "passed.test" },
  { label: "filtered, opened", network: "filtered", host: "opened.test" },
  { label: "filtered, opened for a secret", network: "filtered", host: "secret.test" },
] as const;

await using isolation = await openIsolation({ runtimes: ["bwrap"], stateDirectory: join(directory, "state") });
const startMs = await measureStarts();
await using undo = new AsyncDisposableStack();
const boxes = {} as Record<keyof typeof NETWORKS, BoxedWorkspace>;
for (const [name, spec] of Object.entries(NETWORKS)) {
  boxes[name as keyof typeof NETWORKS] = undo.use(await started(spec));
}
const download = (host: string) => [
  ...["curl", "-sS", "--http1.1", "-o", "/dev/null", "-w", "%{size_download} %{time_total}"],
  ...[...(host === "passed.test" ? ["--cacert", "/workspace/ca.pem"] : []), `https://${host}/${bytes}`],
];
const asking = (host: string, secure: boolean) => {
  const task = { host, secure, connections: CONNECTIONS, requests };
  const trust = host === "passed.test" ? ["env", "CURL_CA_BUNDLE=/workspace/ca.pem"] : [];
  return [...trust, "/workspace/node", "/workspace/requests.ts", JSON.stringify(task)];
};
const tasks = {
  download: async ({ network, host }: (typeof WAYS)[number]) => {
    const [size, seconds = 0] = (await run(boxes[network], download(host))).split(" ").map(Number);
    if (size !== bytes) throw new Error(`only ${size} bytes came`);
    return bytes / 1e6 / seconds;
  },
  http: async ({ network, host }: (typeof WAYS)[number]) =>
    requests / Number(await run(boxes[network], asking(host, false))),
  https: async ({ network, host }: (typeof WAYS)[number]) =>
    requests / Number(await run(boxes[network], asking(host, true))),
};
const costs: NetworkCosts = {
  ...{ bytes, requests, connections: CONNECTIONS, starts: startMs },
  download: await rows(tasks.download, WAYS),
  http: await rows(tasks.http, WAYS.slice(0, 3)),
  https: await rows(tasks.https, WAYS),
};
process.stdout.write(`${JSON.stringify(costs)}\n`);

/** Samples of all ways in turns; the first round warms up. */
async function rows(
  task: (way: (typeof WAYS)[number]) => Promise<number>,
  ways: readonly (typeof WAYS)[number][],
): Promise<NetworkRow[]> {
  const measured = ways.map((way) => ({ way, rates: [] as number[], cpuMs: [] as number[] }));
  for (let i = -1; i < runs; i += 1) {
    for (const { way, rates, cpuMs } of measured) {
      const before = cpuOfNetworks();
      const rate = await task(way);
      if (i < 0) continue;
      rates.push(rate);
      cpuMs.push(cpuOfNetworks() - before);
    }
  }
  return measured.map(({ way, rates, cpuMs }) => ({ label: way.label, rate: median(rates), cpuMs: median(cpuMs) }));
}

/** Until the first command has ended, in a sandbox that is new. */
async function measureStarts(): Promise<NetworkCosts["starts"]> {
  const kinds = { none: { network: "none" }, ...NETWORKS } as const;
  const measured = Object.entries(kinds).map(([label, spec]) => ({ label, spec, all: [] as number[] }));
  for (let i = -1; i < starts; i += 1) {
    for (const { spec, all } of measured) {
      const box: { current?: BoxedWorkspace } = {};
      const ms = await timed(async () => {
        box.current = await started(spec);
        await run(box.current, ["true"]);
      });
      await box.current?.destroy();
      if (i >= 0) all.push(ms);
    }
  }
  return measured.map(({ label, all }) => ({ label, ms: median(all) }));
}

async function started(spec: Partial<SandboxSpec>): Promise<BoxedWorkspace> {
  const workspaces = [{ lowers: [project], rules: [{ pattern: "**", permission: "write" }] }] as const;
  const sandbox = await isolation.create({ runtime: "bwrap", ...spec, workspaces });
  await sandbox.start();
  return sandbox;
}

async function run(sandbox: BoxedWorkspace, command: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await sandbox.exec({ command: command as [string, ...string[]] });
  if (exitCode !== 0) throw new Error(`${command[0]} ended with ${exitCode}: ${stderr}`);
  return stdout.toString();
}

/** Milliseconds that our process and pasta, which it started, have used: the programs in the boxes are not theirs. */
function cpuOfNetworks(): number {
  const { user, system } = process.cpuUsage();
  let total = (user + system) / 1000;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const [, program, fields] = /\(((?:passt|pasta)\S*)\) (.*)/.exec(statOf(pid)) ?? [];
    if (program === undefined) continue;
    const [utime = 0, stime = 0] = fields!.split(" ").slice(11, 13).map(Number);
    total += (utime + stime) * MS_PER_TICK;
  }
  return total;
}

function statOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return ""; // it ended meanwhile
  }
}
