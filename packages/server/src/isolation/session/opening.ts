import type { ShellProcess } from "../backend/backend.ts";
import { cancelled, SandboxError } from "../backend/errors.ts";
import { OutputBuffer } from "../exec/output.ts";
import type { Conversation } from "./conversation.ts";
import type { Outlet } from "./outlet.ts";
import type { Shell } from "./shells.ts";

const READY_TIMEOUT_MS = 10_000;
/** Enough to say why a shell did not start. */
const COMPLAINT_BYTES = 1_000;

/** Waits until the shell takes commands; what it prints on the way is nobody's output. */
export async function awaitReady(
  parts: {
    readonly process: ShellProcess;
    readonly conversation: Conversation;
    readonly stdout: Outlet;
    readonly stderr: Outlet;
  },
  shell: Shell,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { process, conversation, stdout, stderr } = parts;
  const complaint = new OutputBuffer(COMPLAINT_BYTES);
  stdout.open(new OutputBuffer(0));
  stderr.open(complaint);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const abandon = () => reject(cancelled(signal?.reason));
  const timer = setTimeout(
    () => reject(new SandboxError("INTERNAL", `the shell was not ready after ${READY_TIMEOUT_MS} ms`)),
    READY_TIMEOUT_MS,
  );
  conversation.start(shell).then(resolve, reject);
  process.exit.then(({ exitCode }) => {
    const said = complaint.take().data.toString().trim();
    const why = said === "" ? "" : `: ${said}`;
    reject(new SandboxError("INTERNAL", `the shell ended with exit code ${exitCode} before it was ready${why}`));
  }, reject);
  if (signal?.aborted) abandon();
  signal?.addEventListener("abort", abandon);
  try {
    await promise;
    await drain(parts);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abandon);
  }
}

/** Hands on what a shell that is gone has left. Where nobody can tell how much that is, its streams end by themselves. */
export async function drainRemains(parts: Parameters<typeof drain>[0]): Promise<void> {
  await drain(parts).catch(() => Promise.all([parts.stdout.finish(Infinity), parts.stderr.finish(Infinity)]));
}

/**
 * Hands on what the command that has just ended still owes. Its answer came after its last output was in the pipes, so
 * everything it wrote is counted there.
 */
export async function drain(parts: {
  readonly process: ShellProcess;
  readonly stdout: Outlet;
  readonly stderr: Outlet;
}): Promise<void> {
  parts.stdout.freeze();
  parts.stderr.freeze();
  const owed = await parts.process.pendingOutput();
  await Promise.all([parts.stdout.finish(owed.stdout), parts.stderr.finish(owed.stderr)]);
}
