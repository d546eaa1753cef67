import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { UsageError } from "../command.ts";
import { parseDuration } from "../run/quantities.ts";

/** A date (2026-02-03, 2026-02-03T10:15:30Z), or how long ago (30s, 10m, 2h). */
export function parseMoment(text: string, option: string, nowMs: number): Timestamp {
  if (/^\d+(\.\d+)?(ms|s|m|h)$/.test(text)) return timestampFromMs(nowMs - parseDuration(text, option));
  const ms = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d)?)?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) {
    throw new UsageError(
      `${option} takes a time such as 2026-02-03T10:15:30Z, or 2h for that long ago, not ${JSON.stringify(text)}`,
    );
  }
  return timestampFromMs(ms);
}
