import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FromLocalOptions, Sandbox } from "@agentfense/sdk";
import { AgentError } from "../errors.ts";
import { FenseExecutor } from "../executors/fense/fense-executor.ts";
import type { SandboxSource } from "../executors/sandboxed/sandbox-source.ts";
import { SandboxWorkspace } from "../workspace/sandbox-workspace.ts";
import { executorPool } from "./executor-pool.ts";
import type { PoolOptions } from "./options.ts";
import { SandboxPool } from "./pool.ts";

/** How the sandboxes of a pool are opened. */
interface OpeningOptions {
  /** Default: those of a server, by the SDK. */
  readonly sandboxes?: SandboxSource | undefined;
  /** What every sandbox begins with; it is never written to. Default: nothing at all. */
  readonly directory?: string | undefined;
  /** Without rules: in an empty sandbox everything may be written, on a directory the SDK's default rules hold. */
  readonly open?: Omit<FromLocalOptions, "sync" | "start" | "signal"> | undefined;
}

/** How the sandboxes of a pool are opened, and how many of them are kept how long. */
export type FensePoolOptions<T = PooledFenseExecutor> = OpeningOptions &
  Omit<PoolOptions<T>, "create" | "destroy" | "reset" | "check">;

const EVERYTHING = [{ pattern: "/**", permission: "write" }] as const;

/**
 * A pool of sandboxes that run. Each serves one session and is destroyed after it: a new one costs no more than
 * making a used one equal to new would, and there is nothing to be forgotten in it.
 */
export function sandboxPool(options: FensePoolOptions<Sandbox>): SandboxPool<Sandbox> {
  const { sandboxes, directory, open, ...keeping } = options;
  const scratch = new Map<Sandbox, string>();
  return new SandboxPool<Sandbox>({
    ...keeping,
    create: async (signal) => await openSandbox({ sandboxes, directory, open }, scratch, signal),
    check: checkSandbox,
    destroy: async (sandbox) => await destroySandbox(sandbox, scratch),
  });
}

/**
 * The same as executors, for a SandboxManager: code runs in the session's sandbox, and its files are those in there.
 */
export function fensePool(options: FensePoolOptions): SandboxPool<PooledFenseExecutor> {
  const { sandboxes, directory, open, ...keeping } = options;
  const scratch = new Map<Sandbox, string>();
  return executorPool<PooledFenseExecutor>({
    ...keeping,
    create: async (signal) =>
      new PooledFenseExecutor(await openSandbox({ sandboxes, directory, open }, scratch, signal), (sandbox) =>
        destroySandbox(sandbox, scratch),
      ),
    check: async ({ sandbox }, signal) => await checkSandbox(sandbox, signal),
  });
}

/** Runs code in a sandbox of its own, which ends with it. */
export class PooledFenseExecutor extends FenseExecutor {
  readonly sandbox: Sandbox;
  /** The files in the sandbox, as its rules show them. */
  readonly workspace: SandboxWorkspace;
  readonly #destroy: (sandbox: Sandbox) => Promise<void>;

  constructor(sandbox: Sandbox, destroy: (sandbox: Sandbox) => Promise<void>) {
    super({ sandbox });
    this.sandbox = sandbox;
    this.workspace = new SandboxWorkspace(sandbox);
    this.#destroy = destroy;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    try {
      await super[Symbol.asyncDispose]();
    } finally {
      await this.#destroy(this.sandbox);
    }
  }
}

/** Changes stay in the sandbox whatever its holder does: they could reach other sessions by the directory. */
async function openSandbox(
  { sandboxes = Sandbox, directory, open = {} }: OpeningOptions,
  scratch: Map<Sandbox, string>,
  signal: AbortSignal,
): Promise<Sandbox> {
  const fixed = { sync: "never", signal } as const;
  if (directory !== undefined) return await ready(await sandboxes.fromLocal(directory, { ...open, ...fixed }), signal);
  const empty = await mkdtemp(join(tmpdir(), "agentfense-empty-"));
  try {
    const rules = open.preset === undefined && open.permissions === undefined ? { permissions: EVERYTHING } : {};
    const sandbox = await ready(await sandboxes.fromLocal(empty, { ...open, ...rules, ...fixed }), signal);
    scratch.set(sandbox, empty);
    return sandbox;
  } catch (error) {
    await rm(empty, { recursive: true, force: true });
    throw error;
  }
}

/** The first command mounts the files and starts the box; nobody shall wait for that later. */
async function ready(sandbox: Sandbox, signal: AbortSignal): Promise<Sandbox> {
  try {
    await sandbox.run(["true"], { signal });
    return sandbox;
  } catch (error) {
    await sandbox[Symbol.asyncDispose]();
    throw error;
  }
}

async function checkSandbox(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  const { status } = await sandbox.refresh({ signal });
  if (status !== "running") throw new AgentError(`the sandbox ${sandbox.id} is ${status}`);
}

async function destroySandbox(sandbox: Sandbox, scratch: Map<Sandbox, string>): Promise<void> {
  try {
    await sandbox[Symbol.asyncDispose]();
  } finally {
    const empty = scratch.get(sandbox);
    scratch.delete(sandbox);
    if (empty !== undefined) await rm(empty, { recursive: true, force: true });
  }
}
