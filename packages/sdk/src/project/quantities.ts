const UNITS: Readonly<Record<string, number>> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** `512m`, `1g`, `1.5GiB` or plain bytes, in units of 1024; nothing for what is no size. */
export function bytesOf(text: string): number | undefined {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?$/i.exec(text) ?? [];
  const bytes = Number(digits) * (UNITS[unit?.toLowerCase() ?? ""] ?? Number.NaN);
  return bytes <= Number.MAX_SAFE_INTEGER ? Math.floor(bytes) : undefined;
}

const PERIOD_US = 100_000;

/** `0.5` CPUs as microseconds of CPU time in each 100 ms; nothing below what the kernel takes, a millisecond. */
export function cpuQuotaOf(text: string): number | undefined {
  const quota = /^\d+(\.\d+)?$/.test(text) ? Math.round(Number(text) * PERIOD_US) : Number.NaN;
  return quota >= 1000 && quota <= 1024 * PERIOD_US ? quota : undefined;
}
