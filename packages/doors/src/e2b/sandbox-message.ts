import { availableParallelism, totalmem } from "node:os";
import type { ResourceLimits, SandboxInfo } from "@agentfense/sdk";

/** Labels of sandboxes that were made here: the template, and what the client says of them. */
export const TEMPLATE = "e2b.template";
export const METADATA = "e2b.metadata.";
/** A call about its inside resumes it. */
export const AUTO_RESUME = "e2b.auto-resume";
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
    state: isRunning(info) ? "running" : info.status,
    metadata: metadataOf(labels),
    lifecycle: {
      onTimeout: info.pauseAtExpiry ? "pause" : "kill",
      autoResume: labels[AUTO_RESUME] !== undefined,
    },
    ...networkMessage(info),
    volumeMounts: [],
  };
}

/** One that has paused by itself runs again with the next command: nobody needs to know. */
export function isRunning({ status, statusReason }: SandboxInfo): boolean {
  return status === "running" || (status === "paused" && statusReason === "idle");
}

function networkMessage({ network, networkRules }: SandboxInfo): object {
  if (network !== "filtered") return { allowInternetAccess: network !== "none" };
  const allowOut = networkRules.map(({ host }) => host);
  return { allowInternetAccess: false, network: { allowOut, denyOut: ["0.0.0.0/0"] } };
}

/** What has no limit of its own may use what this machine has; of a disk that is not known. */
export function resourcesMessage({ cpuQuota = 0, memoryBytes = 0, diskBytes = 0 }: ResourceLimits) {
  return {
    cpuCount: cpuQuota > 0 ? Math.ceil(cpuQuota / 100_000) : availableParallelism(),
    memoryMB: Math.round((memoryBytes > 0 ? memoryBytes : totalmem()) / MIB),
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
