// Times and sizes as people write them. What is printed by the format functions is read back as the same number.

const TIME_UNITS: readonly (readonly [unit: string, milliseconds: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
];

const TIME_PART = /(\d+(?:\.\d+)?)(ms|d|h|m|s)/g;
const WHOLE_TIME = /^(?:\d+(?:\.\d+)?(?:ms|d|h|m|s))+$/;

/** "30s", "1h30m", "500ms", "7d" or 0, in milliseconds. A number without a unit is refused: nobody could tell which. */
export function parseDuration(value: string | number): number | undefined {
  if (value === 0 || value === "0") return 0;
  if (typeof value === "number" || !WHOLE_TIME.test(value)) return undefined;
  const sizes = new Map(TIME_UNITS);
  const total = [...value.matchAll(TIME_PART)].reduce(
    (sum, [, digits, unit]) => sum + Number(digits) * sizes.get(unit!)!,
    0,
  );
  const milliseconds = Math.ceil(total);
  return Number.isSafeInteger(milliseconds) ? milliseconds : undefined;
}

export function formatDuration(milliseconds: number): string {
  if (milliseconds === 0) return "0";
  let rest = milliseconds;
  let text = "";
  for (const [unit, size] of TIME_UNITS) {
    // A day is 24h to everybody who writes one.
    if (unit === "d" && milliseconds < 2 * size) continue;
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text;
}

const SIZE_UNITS: readonly string[] = ["", "k", "m", "g", "t"];

/** "512MiB", "10GB", "64k" or plain bytes. All units are powers of 1024, as in the options of the command line. */
export function parseSize(value: string | number): number | undefined {
  const [, digits, unit] = /^(\d+(?:\.\d+)?) ?([kmgt]?)(?:i?b)?$/i.exec(String(value)) ?? [];
  if (digits === undefined || unit === undefined) return undefined;
  const power = SIZE_UNITS.indexOf(unit.toLowerCase());
  const bytes = Math.floor(Number(digits) * 1024 ** power);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

export function formatSize(bytes: number): string {
  for (let power = SIZE_UNITS.length - 1; power > 0; power -= 1) {
    const unit = 1024 ** power;
    if (bytes >= unit && bytes % unit === 0) return `${bytes / unit}${SIZE_UNITS[power]!.toUpperCase()}iB`;
  }
  return String(bytes);
}
