import { SandboxError, type SandboxErrorCode, type SandboxProcess } from "@agentfense/sdk";

const OVER: ReadonlySet<SandboxErrorCode> = new Set(["PROCESS_NOT_FOUND", "PROCESS_UNSUITABLE"]);

/** To a process and all that it started. Resolves to false when it has ended already. */
export async function signalIfItLives(process: SandboxProcess, signal: string): Promise<boolean> {
  try {
    await process.signal(signal);
    return true;
  } catch (error) {
    if (error instanceof SandboxError && OVER.has(error.code)) return false;
    throw error;
  }
}
