import { readdirSync, readFileSync } from "node:fs";
import { openPlace } from "./place.ts";

// Looks around in a box with a private network; prints what it found. The host's own address is the argument.

const targets = ["10.0.0.1", "169.254.169.254", "172.16.0.1", "192.168.0.1", "100.64.0.1", process.argv[2] ?? ""];
const instance = `network-${process.pid}`;
let report: object;
{
  await using place = await openPlace({ instance, spec: { network: "private" } });
  const attempt = (target: string): string =>
    `timeout 2 bash -c 'echo >/dev/tcp/${target}/80' 2>&1 | grep -q 'No route' && echo ${target}`;
  const unreachable = (await place.sh(targets.map(attempt).join("\n"))).stdout.trim().split("\n");
  const devices = (await place.sh("cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' ' | sort")).stdout;
  const routes = (await place.sh("ip route del unreachable 10.0.0.0/8 2>/dev/null || echo refused")).stdout;
  const resolver = (await place.sh("cat /etc/resolv.conf")).stdout;
  report = { devices, unreachable, routes, resolver };
}
await new Promise((resolve) => setTimeout(resolve, 100));
console.log(JSON.stringify({ ...report, leftOver: helpersLeft() }));

function helpersLeft(): number {
  return readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "latin1").includes(`AGENTFENSE_${instance}`);
    } catch {
      return false;
    }
  }).length;
}
