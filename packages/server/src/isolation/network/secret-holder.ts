import type { SecureContext } from "node:tls";
import type { TrustFiles } from "../backend/backend.ts";
import { SandboxAuthority } from "./certificates.ts";
import { placeholderFor, type Secret, SecretSet, type SecretWithValue } from "./secrets.ts";
import { HostCertificates, hostTrust } from "./trust.ts";

/** What programs in a box get, so that connections of theirs can be opened. */
export interface Credentials {
  readonly trust: TrustFiles;
  /** Placeholders by the names of variables. */
  readonly placeholders: Readonly<Record<string, string>>;
}

export interface Renewal {
  /** Whether the new value is sent from now on. */
  readonly isUsed: boolean;
  readonly hosts: readonly string[];
}

/** What opens the connections of one box: exactly those to its names, its authority's certificate reaches further down. */
export interface Opener {
  /** As in a network rule: those that are opened, exactly. */
  readonly names: readonly string[];
  readonly authority: SandboxAuthority;
  readonly secrets: SecretSet;
  /** Whom this host trusts, and more in tests. */
  trust(more: readonly string[]): SecureContext;
}

/**
 * Keeps the values of secrets and the keys of authorities, in the network's thread and nowhere else, as long as their box may be
 * made again. A placeholder stays the same all this time: a program may have written it into its settings.
 */
export class SecretHolder {
  readonly #openers = new Map<number, Opener>();
  #host: HostCertificates | undefined;
  /** Contexts by the certificates that are trusted beside this host's: reading a store takes a while. */
  readonly #trust = new Map<string, SecureContext>();

  /** For a box whose connections to these names are opened. */
  async keep(id: number, names: readonly string[], values: readonly SecretWithValue[]): Promise<Credentials> {
    const secrets: Secret[] = values.map((secret) => ({ ...secret, placeholder: placeholderFor(secret.value) }));
    const authority = new SandboxAuthority(names);
    this.#host ??= new HostCertificates();
    const trust = await this.#host.with(authority);
    this.#openers.set(id, { names, authority, secrets: new SecretSet(secrets), trust: (more) => this.#trusted(more) });
    return { trust, placeholders: Object.fromEntries(secrets.map(({ name, placeholder }) => [name, placeholder])) };
  }

  #trusted(more: readonly string[]): SecureContext {
    const key = more.join();
    const trust = this.#trust.get(key) ?? hostTrust(more);
    this.#trust.set(key, trust);
    return trust;
  }

  opener(id: number | undefined): Opener | undefined {
    return id === undefined ? undefined : this.#openers.get(id);
  }

  /**
   * Puts another value, or none, in the place of a secret's. One for a host whose connections are not opened waits for the next box.
   * Returns what became of it, and the hosts to which connections have to be made anew.
   */
  renew(id: number, name: string, next: SecretWithValue | undefined): Renewal {
    const opener = this.#openers.get(id);
    if (opener === undefined) return { isUsed: false, hosts: [] };
    const { names, secrets } = opener;
    const hosts = secrets.renew(name, next?.hosts.every((host) => names.includes(host)) ? next : undefined);
    return { isUsed: next !== undefined && secrets.has(name), hosts };
  }

  forget(id: number): void {
    this.#openers.delete(id);
  }
}
