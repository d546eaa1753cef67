import type { SecretWithValue } from "../../isolation/network/secrets.ts";
import type { Caller } from "../caller.ts";
import type { SandboxRecord, SandboxSecretRecord, SecretRecord } from "../store/store.ts";

export interface PutSecretRequest {
  /** For callers who may name any owner. */
  readonly ownerId: string;
  readonly name: string;
  readonly value: string;
  readonly hosts: readonly string[];
  /** "header NAME", "bearer", "basic", "query KEY" or "body". */
  readonly place: string;
}

/**
 * Secrets that owners keep on the server, sealed. A value goes in and never out: what is stored of it only a sandbox's network gets.
 * Somebody else's secret is as absent as one that never was (SECRET_NOT_FOUND).
 */
export interface Secrets {
  /** In place of the one of this name. SEALING_KEY_MISSING where the server has no key to seal it with. */
  put(caller: Caller, request: PutSecretRequest): Promise<SecretRecord>;
  /** The caller's, or for an administrator those of this owner ("": of all). */
  list(caller: Caller, ownerId: string): Promise<readonly SecretRecord[]>;
  delete(caller: Caller, ownerId: string, name: string): Promise<void>;
}

/** A secret that a sandbox is to use. */
export interface AskedSecret {
  readonly name: string;
  /** Absent: the owner's of this name, for the hosts and the place that it has. */
  readonly value?: string | undefined;
  readonly hosts: readonly string[];
  readonly place: string;
}

export interface AdmittedSecret extends SecretWithValue {
  /** It is the owner's, and stays his to replace and to delete. */
  readonly isKept: boolean;
}

/** An owner's secret has another value, or none. */
export interface SecretChange {
  readonly ownerId: string;
  readonly name: string;
  readonly secret: SecretWithValue | undefined;
}

/** What sandboxes need of secrets. */
export interface SandboxSecrets {
  /** What is asked for, with the owner's own values. */
  admit(ownerId: string, asked: readonly AskedSecret[]): Promise<readonly AdmittedSecret[]>;
  /** As the record of the sandbox is to have them: names, and what is its own sealed. */
  recordsFor(
    sandbox: Pick<SandboxRecord, "id" | "ownerId">,
    admitted: readonly AdmittedSecret[],
  ): readonly SandboxSecretRecord[];
  /** With their values, for a sandbox that starts. */
  open(sandbox: Pick<SandboxRecord, "id" | "ownerId" | "secrets">): Promise<readonly SecretWithValue[]>;
  /** Whoever changed one waits for the listener. */
  onChange(listener: (change: SecretChange) => Promise<void>): Disposable;
}
