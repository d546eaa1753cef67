import manifest from "../package.json" with { type: "json" };
import { type Isolation, type IsolationOptions, openIsolation } from "./isolation/isolation.ts";
import type { Jobs } from "./isolation/jobs/thread.ts";
import { leaveNoCore } from "./isolation/network/gate.ts";
import { type AuditOptions, openAudit } from "./runtime/audit/open-audit.ts";
import type { LocalDirectories } from "./runtime/codebases/local/directories.ts";
import { withLocal } from "./runtime/codebases/local/with-local.ts";
import { openCodebases } from "./runtime/codebases/open-codebases.ts";
import type { CodebasesOptions } from "./runtime/codebases/parts.ts";
import { openKeys } from "./runtime/keys/open-keys.ts";
import { deltaWork } from "./runtime/sandboxes/delta-work.ts";
import { type OpenSandboxes, openSandboxes } from "./runtime/sandboxes/open-sandboxes.ts";
import type { SandboxesOptions } from "./runtime/sandboxes/options.ts";
import { type OpenVaultOptions, openVault } from "./runtime/secrets/open-vault.ts";
import type { MetadataStore } from "./runtime/store/store.ts";
import type { ServiceRuntime } from "./service/rpc/register.ts";

export interface RuntimeOptions {
  /** The caller's to close, after the runtime. */
  readonly store: MetadataStore;
  /** The same. */
  readonly jobs: Jobs;
  readonly log: (entry: object) => void;
  /** `log`: who is told of every event; default: the operator's log. */
  readonly audit: Pick<AuditOptions, "retention" | "alerts"> & Partial<Pick<AuditOptions, "log">>;
  readonly codebases: Pick<CodebasesOptions, "directory" | "limits" | "retention">;
  /** Directories of the host that are codebases; absent: there are none. */
  readonly local?: LocalDirectories;
  readonly isolation: Omit<IsolationOptions, "log" | "runtimes">;
  readonly secrets: Pick<OpenVaultOptions, "sealing" | "lostKeys">;
  readonly sandboxes: Omit<
    SandboxesOptions,
    "store" | "codebases" | "isolation" | "deltas" | "secrets" | "audit" | "log"
  >;
  readonly keysRequired: boolean;
}

/** Everything below the services. */
export interface OpenRuntime extends AsyncDisposable {
  readonly service: Omit<ServiceRuntime, "links">;
  readonly isolation: Isolation;
  readonly sandboxes: OpenSandboxes;
}

/** Puts the runtime together, whoever will ask it: clients of a server, or the program around it. */
export async function openRuntime(options: RuntimeOptions): Promise<OpenRuntime> {
  const { store, jobs, log, local } = options;
  const { runtimes } = options.sandboxes;
  await using undo = new AsyncDisposableStack();
  const audit = undo.use(openAudit({ store, log, ...options.audit }));
  const keys = openKeys({ store });
  const secrets = await openVault({ store, audit, log, onValue: leaveNoCore, ...options.secrets });
  const [stored, isolation] = await allOpened(undo, [
    openCodebases({ store, jobs, audit, log, ...options.codebases }),
    openIsolation({ ...options.isolation, runtimes, log }),
  ]);
  const codebases = local === undefined ? stored : withLocal(stored, { local, jobs, audit });
  const deltas = deltaWork(jobs);
  const sandboxes = undo.use(
    await openSandboxes({ store, codebases, isolation, deltas, secrets, audit, log, ...options.sandboxes }),
  );
  const info = {
    version: manifest.version,
    runtimes,
    degradations: () => isolation.degradations,
    keysRequired: options.keysRequired,
  };
  const parts = undo.move();
  return {
    service: { codebases, sandboxes, secrets, audit, keys, info },
    isolation,
    sandboxes,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** Waits for all of them, also when one fails: whatever was opened is closed then. */
async function allOpened<Parts extends readonly AsyncDisposable[]>(
  undo: AsyncDisposableStack,
  opening: { readonly [Index in keyof Parts]: Promise<Parts[Index]> },
): Promise<Parts> {
  const settled = await Promise.allSettled(opening);
  for (const one of settled) if (one.status === "fulfilled") undo.use(one.value);
  const failed = settled.find((one) => one.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return settled.map((one) => (one as PromiseFulfilledResult<AsyncDisposable>).value) as unknown as Parts;
}
