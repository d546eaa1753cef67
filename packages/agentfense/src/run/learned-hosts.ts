import type { SandboxEvent } from "@agentfense/server/isolation";
import { warn } from "../output.ts";
import { counted } from "../wording.ts";

/** The hosts that a sandbox reached while its list was learned, each with its ports. */
export class LearnedHosts {
  readonly #ports = new Map<string, Set<number>>();

  add(event: SandboxEvent): void {
    if (event.kind !== "connection_allowed") return;
    const ports = this.#ports.get(event.host) ?? new Set();
    this.#ports.set(event.host, ports.add(event.port));
  }

  /** As the command line and a project's policy take it, for a person. */
  report(): void {
    const hosts = [...this.#ports]
      .map(([host, ports]) => `${host}:${[...ports].sort((one, other) => one - other).join(",")}`)
      .sort();
    if (hosts.length === 0) return void warn("it reached no host");
    warn(`it reached ${counted(hosts.length, "host")}, which these options allow, and no others:`);
    process.stderr.write(`${hosts.map((host) => `--allow ${host}`).join(" ")}\n`);
    warn("the same for the project's policy:");
    process.stderr.write(`network:\n  allow:\n${hosts.map((host) => `    - "${host}"\n`).join("")}`);
  }
}
