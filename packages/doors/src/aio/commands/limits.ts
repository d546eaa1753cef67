import * as shape from "../../shape.ts";
import type { AioDoorOptions } from "../options.ts";

const LONGEST_MS = 24 * 3600 * 1000;

export const SECONDS = shape
  .number()
  .min(0)
  .max(LONGEST_MS / 1000);

/** Clients of the AIO sandbox know no limit unless they give one: without one it is the longest that the server allows. */
export function hardTimeoutMs(hardTimeout: number | undefined, { longestMs = LONGEST_MS }: AioDoorOptions): number {
  return hardTimeout === undefined ? longestMs : hardTimeout * 1000;
}
