export interface ServiceLogLine {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
  readonly [fact: string]: unknown;
}

/** The operator's log: unlike answers to callers it may name what really happened. */
export type ServiceLog = (line: ServiceLogLine) => void;
