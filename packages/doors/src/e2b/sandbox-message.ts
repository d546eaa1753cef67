import type { ResourceLimits, SandboxInfo } from "@agentfense/sdk";

/** Labels of sandboxes that were made here: the template, and what the client says of them. */
export const TEMPLATE = "e2b.template";
export const METADATA = "e2b.metadata.";
/** Its ports are for those with a key or a token, also where the operator opens them to everybody. */
export const PRIVATE_PORTS = "e2b.private-ports";

/** Clients go by it to know what there is. */
export const ENVD_VERSION = "0.6.13";
const MIB = 1024 * 1024;

export function isOurs({ labels }: SandboxInfo): boolean {
  return labels[TEMPLATE] !== undefined;
}

export function detailMessage(info: SandboxInfo): object {
  const { resources, labels } = info;
  const started = info.startedAt ?? info.createdAt;
  return {
    ...baseMessage(info),
    startedAt: started.toISOString(),
    // One without an end has one that is far away: clients want to read a date.
    endAt: (info.expiresAt ?? new Date(started.getTime() + 365 * 24 * 3600 * 1000)).toISOString(),
    ...resourcesMessage(resources),
    state: info.status,
    metadata: metadataOf(labels),
  };
}

/** 0: no limit of its own. */
export function resourcesMessage({ cpuQuota = 0, memoryBytes = 0, diskBytes = 0 }: ResourceLimits) {
  return {
    cpuCount: Math.ceil(cpuQuota / 100_000),
    memoryMB: Math.round(memoryBytes / MIB),
    diskSizeMB: Math.round(diskBytes / MIB),
  };
}

export function baseMessage({ id, labels }: SandboxInfo): object {
  const template = labels[TEMPLATE] ?? "";
  return { templateID: template, alias: template, sandboxID: id, clientID: "agentfense", envdVersion: ENVD_VERSION };
}

function metadataOf(labels: SandboxInfo["labels"]): Record<string, string> {
  const own = Object.entries(labels).filter(([name]) => name.startsWith(METADATA));
  return Object.fromEntries(own.map(([name, value]) => [name.slice(METADATA.length), value]));
}
