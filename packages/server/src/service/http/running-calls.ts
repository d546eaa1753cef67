import type { ConnectError } from "@connectrpc/connect";
import type { Caller } from "../../runtime/caller.ts";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import { fromRuntimeError } from "../rpc/connect-error.ts";

/** A call under way. */
export interface RunningCall {
  /** Aborts when the caller is gone, and when the server ends the call. */
  readonly signal: AbortSignal;
  /** Aborts only in the second case; its reason is the error for the caller. */
  readonly cut: AbortSignal;
  end(): void;
}

interface NewCall {
  readonly owner: string;
  readonly secret: string | undefined;
  /** It never ends by itself. */
  readonly endless: boolean;
  readonly signal: AbortSignal;
}

interface Entry extends NewCall {
  readonly controller: AbortController;
}

interface RunningCallsOptions {
  /** 0: no limit. */
  readonly concurrentCalls: number;
  readonly isRevoked: (secret: string) => Promise<boolean>;
  readonly recheckMs?: number;
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
  readonly #options: RunningCallsOptions;
  readonly #recheck: NodeJS.Timeout;
  #rechecking = false;

  constructor(options: RunningCallsOptions) {
    this.#options = options;
    this.#recheck = setInterval(() => void this.#endRevoked(), options.recheckMs ?? RECHECK_MS);
    this.#recheck.unref();
  }

  get count(): number {
    return this.#entries.size;
  }

  /** RATE_LIMITED when the owner has too many already. */
  begin(call: NewCall): RunningCall {
    const running = this.#perOwner.get(call.owner) ?? 0;
    const { concurrentCalls } = this.#options;
    if (concurrentCalls > 0 && running >= concurrentCalls) {
      throw new RuntimeError("RATE_LIMITED", `${running} calls are running already`, {
        details: { concurrent_calls: String(concurrentCalls), retry_after_ms: "1000" },
        hint: "wait for one of them to end",
      });
    }
    const entry: Entry = { ...call, controller: new AbortController() };
    this.#entries.add(entry);
    this.#perOwner.set(call.owner, running + 1);
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
        if (secret === undefined || !(await this.#options.isRevoked(secret))) continue;
        const reason = fromRuntimeError(new RuntimeError("UNAUTHENTICATED", "the API key was revoked"));
        for (const { controller } of entries) controller.abort(reason);
      }
    } finally {
      this.#rechecking = false;
    }
  }
}
