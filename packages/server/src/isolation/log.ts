export interface LogLine {
  readonly level: "info" | "error";
  readonly message: string;
  readonly mountPoint?: string;
}
