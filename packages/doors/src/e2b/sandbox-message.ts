import type { SandboxInfo } from "@agentfense/sdk";

/** Labels of sandboxes that were made here: the template, and what the client says of them. */
export const TEMPLATE = "e2b.template";
export const METADATA = "e2b.metadata.";

/** Clients go by it to know what there is. */
const ENVD_VERSION = "0.6.13";
const MIB = 1024 * 1024;

export function isOurs({ labels }: SandboxInfo): boolean {
  return labels[TEMPLATE] !== undefined;
}

/** Of one that was just made or connected to: with what lets in to it. */
export function createdMessage(
  info: SandboxInfo,
  { token, domain }: { readonly token: string; readonly domain: string },
): object {
  return { ...baseMessage(info), envdAccessToken: token, trafficAccessToken: null, domain };
}

export function detailMessage(info: SandboxInfo): object {
  const { resources, labels } = info;
  const started = info.startedAt ?? info.createdAt;
  return {
    ...baseMessage(info),
    startedAt: started.toISOString(),
    // One without an end has one that is far away: clients want to read a date.
    endAt: (info.expiresAt ?? new Date(started.getTime() + 365 * 24 * 3600 * 1000)).toISOString(),
    // 0: no limit of its own.
    cpuCount: Math.ceil((resources.cpuQuota ?? 0) / 100_000),
    memoryMB: Math.round((resources.memoryBytes ?? 0) / MIB),
    diskSizeMB: Math.round((resources.diskBytes ?? 0) / MIB),
    state: info.status,
    metadata: metadataOf(labels),
  };
}

function baseMessage({ id, labels }: SandboxInfo): object {
  const template = labels[TEMPLATE] ?? "";
  return { templateID: template, alias: template, sandboxID: id, clientID: "agentfense", envdVersion: ENVD_VERSION };
}

function metadataOf(labels: SandboxInfo["labels"]): Record<string, string> {
  const own = Object.entries(labels).filter(([name]) => name.startsWith(METADATA));
  return Object.fromEntries(own.map(([name, value]) => [name.slice(METADATA.length), value]));
}
