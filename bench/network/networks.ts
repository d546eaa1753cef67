import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { run } from "../client.ts";

/** What programs in a box meet, by its network; one run, all samples in turns. */
export interface NetworkCosts {
  /** Of one download over TLS. */
  readonly bytes: number;
  /** MB a second. */
  readonly download: readonly NetworkRow[];
  /** Of one sample, and the connections over which they are made. */
  readonly requests: number;
  readonly connections: number;
  /** Requests a second. */
  readonly http: readonly NetworkRow[];
  readonly https: readonly NetworkRow[];
  /** From nothing to the end of the first command. */
  readonly starts: readonly { readonly label: string; readonly ms: number }[];
}

export interface NetworkRow {
  readonly label: string;
  readonly rate: number;
  /** What our process and pasta used for one sample: not the box, not the internet. */
  readonly cpuMs: number;
}

export interface NetworkBenchmark {
  readonly directory: string;
  readonly bytes: number;
  readonly requests: number;
  readonly starts: number;
  readonly runs: number;
  readonly signal: AbortSignal;
}

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** On a machine of its own, of network namespaces; needs root. */
export async function measureNetworks({ directory, signal, ...sizes }: NetworkBenchmark): Promise<NetworkCosts> {
  await mkdir(directory, { recursive: true });
  const machine = [here("../../test/agents/machine.sh"), directory, process.execPath, here("internet-process.ts")];
  const measure = [process.execPath, here("measure-process.ts"), directory, JSON.stringify(sizes)];
  const argv = [
    "unshare",
    "--net",
    "--mount",
    "--",
    "sh",
    ...machine,
    "--",
    "env",
    `NODE_EXTRA_CA_CERTS=${directory}/ca.pem`,
  ];
  return JSON.parse(await run([...argv, ...measure], { pinned: false }, signal)) as NetworkCosts;
}
