import type { Log } from "../log.ts";
import type { SandboxMetadata, SecretMetadata } from "../store/store.ts";
import { keyIdOf, type Purpose } from "./sealing.ts";
import { keptFor, SecretVault, sandboxesOwnFor, type VaultOptions } from "./vault.ts";

export interface OpenVaultOptions extends VaultOptions {
  readonly store: SecretMetadata & Pick<SandboxMetadata, "listSandboxes" | "updateSandbox">;
  /** Ids of keys that are gone for good: what they sealed cannot be used, and is no reason not to open. */
  readonly lostKeys?: readonly string[] | undefined;
  readonly log: Log;
}

/** A value where it is stored. */
interface Sealed {
  readonly text: string;
  readonly purpose: Purpose;
  replace(text: string): Promise<unknown>;
}

/**
 * Refuses a store of which something was sealed with a key that is not here: sandboxes would fail one by one, for a mistake in the
 * configuration. What an older key sealed is sealed anew, so that the older one can go.
 */
export async function openVault(options: OpenVaultOptions): Promise<SecretVault> {
  const { store, sealing, lostKeys = [], log } = options;
  const missing = new Map<string, number>();
  const old: Sealed[] = [];
  for await (const sealed of everySealed(store)) {
    const keyId = keyIdOf(sealed.text);
    if (sealing?.has(keyId)) {
      if (keyId !== sealing.id) old.push(sealed);
    } else if (!lostKeys.includes(keyId)) missing.set(keyId, (missing.get(keyId) ?? 0) + 1);
  }
  if (missing.size > 0) throw new Error(missingText(missing, sealing !== undefined));
  let renewed = 0;
  for (const { text, purpose, replace } of old) {
    const value = sealing!.open(text, purpose);
    if (value === undefined) continue; // whoever uses it is told
    await replace(sealing!.seal(value, purpose));
    renewed += 1;
  }
  if (renewed > 0) {
    const message = `${renewed} secret(s) were sealed anew with the key ${sealing!.id}; older ones in secrets.key_file can go`;
    log({ level: "info", message });
  }
  return new SecretVault(options);
}

const PAGE = 1000;

async function* everySealed(store: OpenVaultOptions["store"]): AsyncGenerator<Sealed> {
  for (const record of await store.listSecrets()) {
    const replace = (sealed: string) => store.putSecret({ ...record, sealed }, 0);
    yield { text: record.sealed, purpose: keptFor(record), replace };
  }
  for (let after: readonly [number, string] | undefined; ; ) {
    const page = await store.listSandboxes({ after, limit: PAGE });
    for (const sandbox of page) {
      let { secrets } = sandbox;
      for (const [index, { name, own }] of secrets.entries()) {
        if (own === undefined) continue;
        const replace = (sealed: string) => {
          secrets = secrets.with(index, { name, own: { ...own, sealed } });
          return store.updateSandbox(sandbox.id, { secrets });
        };
        yield { text: own.sealed, purpose: sandboxesOwnFor(sandbox, { name, ...own }), replace };
      }
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = [last.createdAtMs, last.id];
  }
}

function missingText(missing: ReadonlyMap<string, number>, hasKeys: boolean): string {
  const parts = [...missing].map(([keyId, count]) => `${count} secret(s) were sealed with the key ${keyId}`);
  const place = hasKeys ? "secrets.key_file does not have it" : "no secrets.key_file is set";
  return `${parts.join(", ")}, and ${place}: put its line back there; if it is lost, name it in secrets.lost_keys, and put these secrets again`;
}
