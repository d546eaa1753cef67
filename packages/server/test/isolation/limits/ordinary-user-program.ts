// Run as an ordinary user with the options of openLimitHost as JSON: limits a box, kills what runs in it, and tells how it went.
import { openLimitHost } from "../../../src/isolation/limits/open-limit-host.ts";
import { entered, runInside } from "./support.ts";

const log: string[] = [];
const host = await openLimitHost({ ...JSON.parse(process.argv[2]!), log: ({ message }) => log.push(message) });
const group = await host.createGroup("box", { memoryBytes: 32 * 1024 * 1024, pids: 20, cpuQuota: 50_000 });
const grouped = group.entrances.length > 0;
const sleeper = grouped ? runInside(group, "setsid sleep 60 & sleep 60") : undefined;
if (grouped) await entered(group, 3);
const usage = await group.usage();
await group.kill();
const sleeperEnd = await sleeper?.end;
const hogEnd = grouped ? await runInside(group, `exec python3 -c 'bytearray(200 << 20)'`).end : undefined;
const oomKills = await group.oomKills();
await group.remove();
await host.close();
const { kind, degradations } = host;
const { entrances, rlimits } = group;
process.stdout.write(
  JSON.stringify({ kind, degradations, entrances, rlimits, usage, sleeperEnd, hogEnd, oomKills, log }),
);
