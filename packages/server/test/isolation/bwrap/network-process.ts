import { readdirSync, readFileSync } from "node:fs";
import { eventually } from "../../../../../test/support/eventually.ts";
import { openBoxFixture } from "./fixture.ts";

// Looks around in a box with a private network; prints what it found. The host's own address is the argument.

const targets = ["10.0.0.1", "169.254.169.254", "172.16.0.1", "192.168.0.1", "100.64.0.1", process.argv[2] ?? ""];
/** Those of its arguments that refuse a connection at once, on any device: by the packet filter, not by nobody's answer. */
const REFUSED = `
import socket, sys
def refused(address, device):
    with socket.socket() as s:
        s.settimeout(1)
        if device: s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
        try: s.connect((address, 80))
        except ConnectionRefusedError: return True
        except OSError: pass
        return False
for address in sys.argv[1:]:
    if all(refused(address, device) for device in (b"", b"net0")): print(address)
`;
const instance = `network-${process.pid}`;
let report: object;
{
  await using place = await openBoxFixture({ instance, spec: { network: "private" } });
  const unreachable = (await place.sh("", { argv: ["/usr/bin/python3", "-c", REFUSED, ...targets] })).stdout
    .trim()
    .split("\n");
  const devices = (await place.sh("cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' ' | sort")).stdout;
  const filter = (await place.sh("iptables -F 2>/dev/null || echo refused")).stdout;
  const resolver = (await place.sh("cat /etc/resolv.conf")).stdout;
  report = { devices, unreachable, filter, resolver };
}
await eventually(() => helpersLeft() === 0).catch(() => {}); // the report tells
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
