import type { ResourceLimits } from "../backend/backend.ts";

/** The controllers we use. cpuacct and freezer exist in v1 only: in v2 every group can count and kill. */
export type Controller = "memory" | "pids" | "cpu" | "cpuacct" | "freezer";

/** The controllers a limit needs. */
export const LIMITING = ["memory", "pids", "cpu"] as const satisfies readonly Controller[];

export type Version = 1 | 2;

/** One control file and what to write into it. */
export interface Setting {
  readonly file: string;
  readonly value: string;
  /** The file depends on how the kernel was built or started; without it the setting is not needed. */
  readonly ifPresent?: true;
  /** The kernel refuses (EINVAL) to give a group more than one above it has, which then holds anyway. */
  readonly unlessTighterAbove?: true;
}

/** What to write into a fresh group, in this order, so that the limits of these controllers hold. */
export function settings(version: Version, controllers: readonly Controller[], limits: ResourceLimits): Setting[] {
  return controllers.flatMap((controller) => SETTINGS[version][controller]?.(limits) ?? []);
}

const CPU_PERIOD_MICROS = 100_000;

type SettingsOf = (limits: ResourceLimits) => Setting[];

const SETTINGS: Record<Version, Partial<Record<Controller, SettingsOf>>> = {
  1: {
    memory: ({ memoryBytes }) =>
      memoryBytes === undefined
        ? []
        : [
            // 0 keeps a group out of the swap also where memsw is not counted.
            { file: "memory.swappiness", value: "0", ifPresent: true },
            // The kernel insists on memory ≤ memory + swap: on the way down from "unlimited" memory goes first.
            { file: "memory.limit_in_bytes", value: `${memoryBytes}` },
            { file: "memory.memsw.limit_in_bytes", value: `${memoryBytes}`, ifPresent: true },
          ],
    pids: ({ pids }) => (pids === undefined ? [] : [{ file: "pids.max", value: `${pids}` }]),
    cpu: ({ cpuQuota, cpuShares }) => [
      ...(cpuQuota === undefined
        ? []
        : [
            { file: "cpu.cfs_period_us", value: `${CPU_PERIOD_MICROS}` },
            { file: "cpu.cfs_quota_us", value: `${cpuQuota}`, unlessTighterAbove: true as const },
          ]),
      ...(cpuShares === undefined ? [] : [{ file: "cpu.shares", value: `${cpuShares}` }]),
    ],
  },
  2: {
    memory: ({ memoryBytes }) =>
      memoryBytes === undefined
        ? []
        : [
            { file: "memory.max", value: `${memoryBytes}` },
            { file: "memory.swap.max", value: "0", ifPresent: true },
            // One command too many dies, not the shell and the server the agent runs beside it.
            { file: "memory.oom.group", value: "0", ifPresent: true },
          ],
    pids: ({ pids }) => (pids === undefined ? [] : [{ file: "pids.max", value: `${pids}` }]),
    cpu: ({ cpuQuota, cpuShares }) => [
      ...(cpuQuota === undefined ? [] : [{ file: "cpu.max", value: `${cpuQuota} ${CPU_PERIOD_MICROS}` }]),
      ...(cpuShares === undefined ? [] : [{ file: "cpu.weight", value: `${weightOfShares(cpuShares)}` }]),
    ],
  },
};

/**
 * The scheduler's own rule: weight 100 is 1024 shares. It keeps proportions (twice the shares, twice the weight), which
 * stretching one range over the other does not; only below 11 and above 102,400 shares it reaches the end of the range.
 */
export function weightOfShares(shares: number): number {
  return Math.min(10_000, Math.max(1, Math.round((shares * 100) / 1024)));
}

/** Where a number is found: a file that is one number, or the line of a key; in units of ours after division. */
export interface Reading {
  readonly file: string;
  readonly key?: string;
  readonly divisor?: number;
}

export interface Readings {
  readonly oomKills?: Reading;
  readonly memoryBytes?: Reading;
  readonly pids?: Reading;
  readonly cpuMicros?: Reading;
}

/** What a group with these controllers can tell. */
export function readings(version: Version, controllers: readonly Controller[]): Readings {
  const told = controllers.map((controller) => READINGS[version][controller] ?? {});
  // cpu.stat is in every v2 group, with or without the controller.
  return Object.assign({}, version === 2 ? { cpuMicros: { file: "cpu.stat", key: "usage_usec" } } : {}, ...told);
}

const READINGS: Record<Version, Partial<Record<Controller, Readings>>> = {
  1: {
    memory: {
      oomKills: { file: "memory.oom_control", key: "oom_kill" },
      memoryBytes: { file: "memory.usage_in_bytes" },
    },
    pids: { pids: { file: "pids.current" } },
    cpuacct: { cpuMicros: { file: "cpuacct.usage", divisor: 1000 } },
  },
  2: {
    memory: { oomKills: { file: "memory.events", key: "oom_kill" }, memoryBytes: { file: "memory.current" } },
    pids: { pids: { file: "pids.current" } },
  },
};
