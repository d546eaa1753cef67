/** A line for the operator. */
export interface LogLine {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
  readonly sandboxId?: string;
  readonly codebaseId?: string;
  readonly error?: unknown;
}
