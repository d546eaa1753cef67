/** From the caller's thread to one that answers. */
export type ToThread =
  | { readonly kind: "ask"; readonly id: number; readonly request: unknown }
  | { readonly kind: "abort"; readonly id: number }
  | { readonly kind: "stop" };

/** And back. */
export type FromThread =
  | { readonly kind: "started" }
  | { readonly kind: "answer"; readonly id: number; readonly value: unknown }
  | { readonly kind: "failure"; readonly id: number; readonly failure: Failure };

/** An error as data: structured clone would drop its class and everything but the message. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** "ENOENT", "DELTA_IN_USE" … of the error, if it had one. */
  readonly code: string | undefined;
  /** Of an error of the kernel's. */
  readonly errno: number | undefined;
}

export function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) {
    return { name: "Error", message: String(error), stack: undefined, code: undefined, errno: undefined };
  }
  const { code, errno } = error as { code?: unknown; errno?: unknown };
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    code: typeof code === "string" ? code : undefined,
    errno: typeof errno === "number" ? errno : undefined,
  };
}
