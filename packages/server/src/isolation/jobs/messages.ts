import type { JobName } from "./jobs.ts";

/** From the caller's thread to a job thread. */
export type ToJobThread =
  | { readonly kind: "run"; readonly id: number; readonly name: JobName; readonly input: unknown }
  | { readonly kind: "abort"; readonly id: number }
  | { readonly kind: "stop" };

/** And back. */
export type FromJobThread =
  | { readonly kind: "started" }
  | { readonly kind: "done"; readonly id: number; readonly output: unknown }
  | { readonly kind: "failed"; readonly id: number; readonly failure: JobFailure };

/** An error as data: structured clone would drop its class and everything but the message. */
export interface JobFailure {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** "ENOENT", "DELTA_IN_USE" … of the error, if it had one. */
  readonly code: string | undefined;
  /** Of an error of the kernel's. */
  readonly errno: number | undefined;
}
