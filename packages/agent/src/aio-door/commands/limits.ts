import { z } from "zod";

/** The server has a limit of its own, usually ten minutes, and cuts this to it. */
export const LONGEST_MS = 24 * 3600 * 1000;

export const SECONDS = z
  .number()
  .min(0)
  .transform((seconds) => Math.min(seconds, LONGEST_MS / 1000));
