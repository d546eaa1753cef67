/** What a scripted command does. */
export interface MockAnswer {
  readonly stdout?: string | Uint8Array;
  readonly stderr?: string | Uint8Array;
  readonly exitCode?: number;
  /** How long it runs; `Infinity` until it is killed. */
  readonly durationMs?: number;
  readonly outOfMemory?: boolean;
  /** Prints back what it reads on stdin, before its own output. */
  readonly echoesStdin?: boolean;
}
