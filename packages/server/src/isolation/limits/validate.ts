import { invalid } from "../backend/errors.ts";
import type { ResourceLimits } from "../backend/limits.ts";

interface Range {
  readonly least: number;
  readonly most: number;
  readonly unit: string;
}

// The kernel's own bounds where it has some; below 4 MiB of memory no program starts, it only dies.
const RANGES = {
  memoryBytes: { least: 4 * 1024 * 1024, most: Number.MAX_SAFE_INTEGER, unit: "bytes" },
  cpuQuota: { least: 1000, most: 1_000_000_000, unit: "microseconds in each 100 ms" },
  cpuShares: { least: 2, most: 262_144, unit: "shares" },
  pids: { least: 1, most: 4_194_304, unit: "processes" },
} satisfies Record<keyof ResourceLimits, Range>;

/** Refuses limits that no kernel could mean: fractions, negatives, NaN, out of range. Absent is: not limited. */
export function validateLimits(limits: ResourceLimits): void {
  for (const name of Object.keys(RANGES) as (keyof ResourceLimits)[]) {
    const value = limits[name];
    if (value === undefined) continue;
    const { least, most, unit } = RANGES[name];
    if (Number.isInteger(value) && value >= least && value <= most) continue;
    throw invalid(`${name} cannot be ${value}`, `a whole number of ${unit} from ${least} to ${most}`);
  }
}

// One path component that is neither hidden nor an option, and no name the kernel keeps for its own files (those have a dot).
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$/;

/** Names become directories: anything that could be another path is refused here, whoever checked it before. */
export function validateName(kind: "instance" | "group", name: string): void {
  if (NAME.test(name)) return;
  const hint = "letters, digits, _ and -, at most 128";
  throw invalid(`not a name for a control group (${kind}): ${JSON.stringify(name)}`, hint);
}
