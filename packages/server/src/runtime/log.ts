/** A line for the operator, with whatever else there is to know. */
export interface LogLine {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
  readonly [fact: string]: unknown;
}

/** The operator's log: unlike answers to callers it may name what really happened. */
export type Log = (line: LogLine) => void;
