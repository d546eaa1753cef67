import { IsolationError } from "../../isolation/backend/isolation-error.ts";
import {
  checkSecretValue,
  parseSecretRule,
  placeText,
  type SecretRule,
  type SecretWithValue,
} from "../../isolation/network/secrets.ts";
import type { AuditLog } from "../audit/api.ts";
import type { Caller } from "../caller.ts";
import { ownerFor } from "../codebases/registry.ts";
import { invalid, RuntimeError } from "../runtime-error.ts";
import type { SandboxRecord, SandboxSecretRecord, SecretMetadata, SecretRecord } from "../store/store.ts";
import type { AdmittedSecret, AskedSecret, PutSecretRequest, SandboxSecrets, SecretChange, Secrets } from "./api.ts";
import { keyIdOf, type Purpose, type SealingKeys } from "./sealing.ts";

const MOST_PER_OWNER = 256;

export interface VaultOptions {
  readonly store: SecretMetadata;
  readonly audit: Pick<AuditLog, "record">;
  /** Absent: no value can be kept here. */
  readonly sealing: SealingKeys | undefined;
  /** A value is about to be in the memory of this process. */
  readonly onValue?: (() => void) | undefined;
  readonly clock?: (() => number) | undefined;
}

/** Values are here in the clear only on their way: into the seal, and out of it to a sandbox's network. */
export class SecretVault implements Secrets, SandboxSecrets {
  readonly #options: VaultOptions;
  readonly #listeners = new Set<(change: SecretChange) => Promise<void>>();

  constructor(options: VaultOptions) {
    this.#options = options;
  }

  async put(caller: Caller, request: PutSecretRequest): Promise<SecretRecord> {
    const { store, audit, clock = Date.now, onValue } = this.#options;
    onValue?.();
    const ownerId = ownerFor(caller, request.ownerId);
    const secret = secretOf(request, request.value);
    const nowMs = clock();
    const { name, hosts } = secret;
    const place = placeText(secret.place);
    const sealed = this.#sealing().seal(secret.value, keptFor({ ownerId, name, hosts, place }));
    const record = { ownerId, name, hosts, place, sealed, createdAtMs: nowMs, updatedAtMs: nowMs };
    const stored = await store.putSecret(record, MOST_PER_OWNER);
    if (stored === undefined) {
      throw new RuntimeError("LIMIT_EXCEEDED", `an owner has at most ${MOST_PER_OWNER} secrets`, {
        details: { limit: String(MOST_PER_OWNER) },
        hint: "delete one first",
      });
    }
    audit.record({ type: "secret_put", ownerId, keyId: caller.keyId, data: { secret: name, hosts, place } });
    await this.#tell({ ownerId, name, secret });
    return stored;
  }

  async list(caller: Caller, ownerId: string): Promise<readonly SecretRecord[]> {
    // Whoever asks for another owner's gets what that owner has for them: nothing.
    if (caller.ownerId !== undefined && ownerId !== "" && ownerId !== caller.ownerId) return [];
    return await this.#options.store.listSecrets(caller.ownerId ?? (ownerId || undefined));
  }

  async delete(caller: Caller, asked: string, name: string): Promise<void> {
    const ownerId = caller.ownerId ?? asked;
    const isOthers = asked !== "" && asked !== ownerId;
    if (isOthers || !(await this.#options.store.deleteSecret(ownerId, name))) throw secretNotFound(name);
    this.#options.audit.record({ type: "secret_deleted", ownerId, keyId: caller.keyId, data: { secret: name } });
    await this.#tell({ ownerId, name, secret: undefined });
  }

  async admit(ownerId: string, asked: readonly AskedSecret[]): Promise<readonly AdmittedSecret[]> {
    if (asked.length > 0) this.#options.onValue?.();
    return await Promise.all(
      asked.map(async ({ value, ...one }) => {
        if (value !== undefined) return { ...secretOf(one, value), isKept: false };
        if (one.hosts.length > 0 || one.place !== "") {
          throw invalid(`the secret ${one.name} has the hosts and the place that it was put with`, "name it alone");
        }
        return { ...(await this.#openKept(ownerId, one.name)), isKept: true };
      }),
    );
  }

  recordsFor(
    { id, ownerId }: Pick<SandboxRecord, "id" | "ownerId">,
    admitted: readonly AdmittedSecret[],
  ): readonly SandboxSecretRecord[] {
    return admitted.map(({ isKept, name, hosts, place: at, value }) => {
      if (isKept) return { name };
      const place = placeText(at);
      const purpose = sandboxesOwnFor({ id, ownerId }, { name, hosts, place });
      return { name, own: { hosts, place, sealed: this.#sealing().seal(value, purpose) } };
    });
  }

  async open(sandbox: Pick<SandboxRecord, "id" | "ownerId" | "secrets">): Promise<readonly SecretWithValue[]> {
    if (sandbox.secrets.length > 0) this.#options.onValue?.();
    const opened: SecretWithValue[] = [];
    for (const { name, own } of sandbox.secrets) opened.push(await this.#openOne(sandbox, name, own));
    return opened;
  }

  onChange(listener: (change: SecretChange) => Promise<void>): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async #tell(change: SecretChange): Promise<void> {
    await Promise.all([...this.#listeners].map((listener) => listener(change)));
  }

  async #openOne(
    sandbox: Pick<SandboxRecord, "id" | "ownerId">,
    name: string,
    own: SandboxSecretRecord["own"],
  ): Promise<SecretWithValue> {
    if (own === undefined) return await this.#openKept(sandbox.ownerId, name);
    const { hosts, place, sealed } = own;
    const hint = "make the sandbox anew, with the value";
    const value = this.#unsealed(name, { sealed, purpose: sandboxesOwnFor(sandbox, { name, hosts, place }), hint });
    return { ...parseSecretRule(name, hosts, place), value };
  }

  async #openKept(ownerId: string, name: string): Promise<SecretWithValue> {
    const record = await this.#options.store.secret(ownerId, name);
    if (record === undefined) throw secretNotFound(name);
    const { sealed } = record;
    const hint = "put it again: agentfense secret put";
    const value = this.#unsealed(name, { sealed, purpose: keptFor(record), hint });
    return { ...parseSecretRule(name, record.hosts, record.place), value };
  }

  #unsealed(
    name: string,
    { sealed, purpose, hint }: { readonly sealed: string; readonly purpose: Purpose; readonly hint: string },
  ): string {
    const { sealing } = this.#options;
    const value = sealing?.open(sealed, purpose);
    if (value !== undefined) return value;
    if (sealing?.has(keyIdOf(sealed))) {
      throw new RuntimeError("SEALING_KEY_MISSING", `the secret ${name} was altered, and does not open`, { hint });
    }
    const message = `the secret ${name} was sealed with the key ${keyIdOf(sealed)}, which this server does not have`;
    throw new RuntimeError("SEALING_KEY_MISSING", message, { details: { key: keyIdOf(sealed) }, hint });
  }

  #sealing(): SealingKeys {
    const { sealing } = this.#options;
    if (sealing !== undefined) return sealing;
    throw new RuntimeError("SEALING_KEY_MISSING", "this server keeps no secrets: it has no key to seal them with", {
      hint: "its operator makes one, (umask 077; head -c 32 /dev/urandom | base64 > FILE), and names the file in secrets.key_file",
    });
  }
}

/** What a value that an owner keeps is sealed for. */
export function keptFor({
  ownerId,
  name,
  hosts,
  place,
}: Pick<SecretRecord, "ownerId" | "name" | "hosts" | "place">): Purpose {
  return ["owner", ownerId, name, hosts, place];
}

/** The same of one that a sandbox has by itself. */
export function sandboxesOwnFor(
  { id, ownerId }: Pick<SandboxRecord, "id" | "ownerId">,
  { name, hosts, place }: Pick<SecretRecord, "name" | "hosts" | "place">,
): Purpose {
  return ["sandbox", id, ownerId, name, hosts, place];
}

function secretOf({ name, hosts, place }: Omit<AskedSecret, "value">, value: string): SecretWithValue {
  try {
    const rule: SecretRule = parseSecretRule(name, hosts, place);
    checkSecretValue(rule, value);
    return { ...rule, value };
  } catch (error) {
    throw error instanceof IsolationError ? invalid(error.message, error.hint) : error;
  }
}

/** In the same words whether it is somebody else's or nobody's. */
function secretNotFound(name: string): RuntimeError {
  return new RuntimeError("SECRET_NOT_FOUND", `there is no secret ${name.slice(0, 200)}`, {
    hint: "put it first: agentfense secret put",
  });
}
