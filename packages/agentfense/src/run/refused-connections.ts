import type { SandboxEvent } from "@agentfense/server/isolation";
import { warn } from "../output.ts";

/** More than these nobody reads; a program may try as many as it likes. */
const SHOWN = 8;
const REMEMBERED = 1000;

/** What a sandbox tried to reach and its list does not allow, and where it sent placeholders that do not belong there. */
export class RefusedConnections {
  readonly #hosts = new Map<string, number>();
  readonly #misplaced = new Set<string>();

  add(event: SandboxEvent): void {
    if (event.kind === "secret_misplaced" && this.#misplaced.size < REMEMBERED) {
      this.#misplaced.add(event.sentence ?? `a secret's placeholder was sent to ${event.host}`);
    }
    if (event.kind !== "connection_denied" || event.host === "") return;
    const name = event.port === 0 ? event.host : `${event.host}:${event.port}`;
    const known = this.#hosts.get(name);
    if (known === undefined && this.#hosts.size >= REMEMBERED) return;
    this.#hosts.set(name, (known ?? 0) + event.count);
  }

  /** For a person, at the end; nothing when there was nothing. */
  report(): void {
    const names = [...this.#hosts].map(([name, count]) => (count === 1 ? name : `${name} (${count} times)`));
    if (names.length > 0) warn(`the network's list kept it from ${listed(names)}; --allow HOST adds to the list`);
    if (this.#misplaced.size > 0) warn(listed([...this.#misplaced]));
  }
}

function listed(words: readonly string[]): string {
  const more = words.length - SHOWN;
  return `${words.slice(0, SHOWN).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
