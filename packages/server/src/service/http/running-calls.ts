import type { ConnectError } from "@connectrpc/connect";
import type { Caller } from "../../runtime/caller.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { fromRuntimeError } from "../rpc/errors.ts";

/** A call under way. */
export interface RunningCall {
  /** Aborts when the caller is gone, and when the server ends the call. */
  readonly signal: AbortSignal;
  /** Aborts only in the second case; its reason is the error for the caller. */
  readonly cut: AbortSignal;
  end(): void;
}

interface Entry {
  readonly owner: string;
  readonly secret: string | undefined;
  readonly endless: boolean;
  readonly controller: AbortController;
}

/** Whose limits a call counts against: the owner's; an administrator's key has its own. */
export function limitedAs(caller: Caller): string {
  return caller.ownerId === undefined ? `key:${caller.keyId ?? ""}` : `owner:${caller.ownerId}`;
}

/** How soon a revoked key ends what runs with it. */
const RECHECK_MS = 700;

/** The calls of all doors: how many each owner has, and the means to end them. */
export class RunningCalls implements Disposable {
  readonly #entries = new Set<Entry>();
  readonly #perOwner = new Map<string, number>();
  readonly #limit: number;
  readonly #isRevoked: (secret: string) => Promise<boolean>;
  readonly #recheck: NodeJS.Timeout;
  #rechecking = false;

  /** `concurrentCalls` 0: no limit. */
  constructor(options: {
    readonly concurrentCalls: number;
    readonly isRevoked: (secret: string) => Promise<boolean>;
    readonly recheckMs?: number;
  }) {
    this.#limit = options.concurrentCalls;
    this.#isRevoked = options.isRevoked;
    this.#recheck = setInterval(() => void this.#endRevoked(), options.recheckMs ?? RECHECK_MS);
    this.#recheck.unref();
  }

  get count(): number {
    return this.#entries.size;
  }

  /** RATE_LIMITED when the owner has too many already. An endless call is one that never ends by itself. */
  begin(call: {
    readonly owner: string;
    readonly secret: string | undefined;
    readonly endless: boolean;
    readonly signal: AbortSignal;
  }): RunningCall {
    const running = this.#perOwner.get(call.owner) ?? 0;
    if (this.#limit > 0 && running >= this.#limit) {
      throw new RuntimeError("RATE_LIMITED", `${running} calls are running already`, {
        details: { concurrent_calls: String(this.#limit), retry_after_ms: "1000" },
        hint: "wait for one of them to end",
      });
    }
    const { owner, secret, endless } = call;
    const entry: Entry = { owner, secret, endless, controller: new AbortController() };
    this.#entries.add(entry);
    this.#perOwner.set(owner, running + 1);
    return {
      signal: AbortSignal.any([call.signal, entry.controller.signal]),
      cut: entry.controller.signal,
      end: () => this.#end(entry),
    };
  }

  cutAll(reason: ConnectError): void {
    for (const { controller } of this.#entries) controller.abort(reason);
  }

  cutEndless(reason: ConnectError): void {
    for (const { controller, endless } of this.#entries) if (endless) controller.abort(reason);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#recheck);
  }

  #end(entry: Entry): void {
    if (!this.#entries.delete(entry)) return;
    const left = (this.#perOwner.get(entry.owner) ?? 1) - 1;
    if (left === 0) this.#perOwner.delete(entry.owner);
    else this.#perOwner.set(entry.owner, left);
  }

  /** Asks once for each secret in use, however many calls it has. */
  async #endRevoked(): Promise<void> {
    if (this.#rechecking) return;
    this.#rechecking = true;
    try {
      const bySecret = Map.groupBy(this.#entries, (entry) => entry.secret);
      for (const [secret, entries] of bySecret) {
        if (secret === undefined || !(await this.#isRevoked(secret))) continue;
        const reason = fromRuntimeError(new RuntimeError("UNAUTHENTICATED", "the API key was revoked"));
        for (const { controller } of entries) controller.abort(reason);
      }
    } finally {
      this.#rechecking = false;
    }
  }
}
