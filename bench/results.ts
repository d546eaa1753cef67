import type { AgentCosts } from "./agent/calls.ts";
import type { IdleMemory } from "./idle-memory.ts";
import type { Machine } from "./machine.ts";
import type { NetworkCosts } from "./network/networks.ts";
import type { RuleCost } from "./rules.ts";
import type { RuntimeCosts } from "./runtimes.ts";
import type { Cell } from "./sample.ts";
import type { SdkCosts, SdkUploadCosts } from "./sdk/calls.ts";
import type { CallCosts } from "./service/calls.ts";
import type { LoadCosts } from "./service/load.ts";
import type { PortCosts } from "./service/ports.ts";
import type { UploadCosts } from "./service/uploads.ts";
import type { RequestCount } from "./trace.ts";
import type { TreeCost } from "./tree-size.ts";

/** All that a run found out: written as it is to bench/results, and what the tables are made from. */
export interface Results {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly runs: number;
  readonly quick: boolean;
  readonly freshProcess: boolean;
  /** Names of the targets, in the order of the columns. */
  readonly targets: string[];
  /** Targets that were wanted and could not be measured. */
  readonly leftOut: { target: string; reason: string }[];
  readonly timings: { id: string; label: string; cells: Cell[] }[];
  readonly requests: { id: string; label: string; counts: RequestCount[] }[];
  rules?: readonly RuleCost[];
  trees?: readonly TreeCost[];
  idleMemory?: IdleMemory;
  runtimes?: RuntimeCosts;
  uploads?: UploadCosts;
  calls?: CallCosts;
  load?: LoadCosts;
  ports?: PortCosts;
  sdk?: SdkCosts;
  sdkUploads?: SdkUploadCosts;
  agent?: AgentCosts;
  networks?: NetworkCosts;
  readonly failures: { benchmark: string; reason: string }[];
}
