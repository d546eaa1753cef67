import type { Sandbox } from "@agentfense/sdk";

/** Where the sandbox of an execution comes from. */
export interface SandboxSupply extends AsyncDisposable {
  /** Whether every execution gets the same one. */
  readonly isOne: boolean;
  use<T>(signal: AbortSignal, work: (sandbox: Sandbox) => Promise<T>): Promise<T>;
}

type OpenSandbox = (signal: AbortSignal) => Promise<Sandbox>;

/** Somebody's sandbox, which stays his. */
export class GivenSandbox implements SandboxSupply {
  readonly isOne = true;
  readonly #sandbox: Sandbox;

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
  }

  async use<T>(_signal: AbortSignal, work: (sandbox: Sandbox) => Promise<T>): Promise<T> {
    return await work(this.#sandbox);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** A new sandbox for each execution. */
export class FreshSandboxes implements SandboxSupply {
  readonly isOne = false;
  readonly #open: OpenSandbox;

  constructor(open: OpenSandbox) {
    this.#open = open;
  }

  async use<T>(signal: AbortSignal, work: (sandbox: Sandbox) => Promise<T>): Promise<T> {
    await using sandbox = await this.#open(signal);
    return await work(sandbox);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

const IDLE_AT_MOST = 4;

/**
 * A sandbox that waits for the next execution when one is over. Executions side by side have one each: to write changes
 * into the directory while something else runs on them would pull files away from under it.
 */
export class KeptSandboxes implements SandboxSupply {
  readonly isOne = false;
  readonly #open: OpenSandbox;
  readonly #idle: Sandbox[] = [];

  constructor(open: OpenSandbox) {
    this.#open = open;
  }

  async use<T>(signal: AbortSignal, work: (sandbox: Sandbox) => Promise<T>): Promise<T> {
    const sandbox = (await this.#take(signal)) ?? (await this.#open(signal));
    let isSound = false;
    try {
      const result = await work(sandbox);
      isSound = true;
      return result;
    } finally {
      // What was begun and not finished goes with its sandbox.
      if (isSound && this.#isWorthKeeping(sandbox)) this.#idle.push(sandbox);
      else await sandbox[Symbol.asyncDispose]();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ends = await Promise.allSettled(this.#idle.splice(0).map((sandbox) => sandbox[Symbol.asyncDispose]()));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  /** One that is idle; those that are gone meanwhile are let go of. */
  async #take(signal: AbortSignal): Promise<Sandbox | undefined> {
    for (let sandbox = this.#idle.pop(); sandbox !== undefined; sandbox = this.#idle.pop()) {
      if (await isRunning(sandbox, signal)) return sandbox;
      await sandbox[Symbol.asyncDispose]();
      signal.throwIfAborted();
    }
    return undefined;
  }

  /** Where a server has a copy of the directory, the copy does not show what others write there. */
  #isWorthKeeping(sandbox: Sandbox): boolean {
    const isOnDirectory = sandbox.client.engine.openDirectory !== undefined;
    return isOnDirectory && this.#idle.length < IDLE_AT_MOST;
  }
}

async function isRunning(sandbox: Sandbox, signal: AbortSignal): Promise<boolean> {
  try {
    return (await sandbox.refresh({ signal })).status === "running";
  } catch {
    return false;
  }
}
