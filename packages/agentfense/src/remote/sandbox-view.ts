import type { PermissionRule } from "@agentfense/protocol/common";
import { NetworkMode, type ResourceLimits, type Sandbox, SandboxSchema } from "@agentfense/protocol/sandbox";
import { print } from "../output.ts";
import { printRecord, printTable } from "../table/table.ts";
import { printable } from "../terminal.ts";
import { jsonOf, printJson, showDuration, showSize, showTime } from "./show.ts";
import { NETWORKS, PATTERN_TYPES, PERMISSIONS, RUNTIMES, SANDBOX_STATES, SYNC_MODES, wordFor } from "./words.ts";

export async function showSandbox(sandbox: Sandbox, json: boolean): Promise<void> {
  if (json) return printJson(jsonOf(SandboxSchema, sandbox));
  await printRecord([
    ["id", sandbox.id],
    ["codebase", sandbox.codebaseId],
    ["version", sandbox.codebaseVersion === 0n ? "newest" : String(sandbox.codebaseVersion)],
    ["owner", sandbox.ownerId],
    ["status", wordFor(SANDBOX_STATES, sandbox.status)],
    ["reason", sandbox.statusReason],
    ["runtime", wordFor(RUNTIMES, sandbox.runtime)],
    ["image", sandbox.image],
    ["network", wordFor(NETWORKS, sandbox.network)],
    ["hosts", sandbox.networkRules.map(({ host, ports }) => `${host}:${ports.join(",")}`).join(" ")],
    ["sync", wordFor(SYNC_MODES, sandbox.sync)],
    ["home", sandbox.home],
    ["limits", showLimits(sandbox.resources)],
    ["labels", showLabels(sandbox.labels)],
    ["created", showTime(sandbox.createdAt)],
    ["started", showTime(sandbox.startedAt)],
    ["stopped", showTime(sandbox.stoppedAt)],
    ["expires", showTime(sandbox.expiresAt)],
    ["idle pause", showDuration(sandbox.idlePause)],
    ["rules", String(sandbox.permissions.length)],
  ]);
}

export async function showSandboxes(sandboxes: readonly Sandbox[], json: boolean): Promise<void> {
  if (json) return printJson(sandboxes.map((sandbox) => jsonOf(SandboxSchema, sandbox)));
  await printTable(
    ["ID", "CODEBASE", "OWNER", "STATUS", "RUNTIME", "CREATED", "EXPIRES", "LABELS"],
    sandboxes.map((sandbox) => [
      sandbox.id,
      sandbox.codebaseId,
      sandbox.ownerId,
      wordFor(SANDBOX_STATES, sandbox.status),
      wordFor(RUNTIMES, sandbox.runtime),
      showTime(sandbox.createdAt),
      showTime(sandbox.expiresAt),
      showLabels(sandbox.labels),
    ]),
  );
}

export async function showRules(rules: readonly PermissionRule[]): Promise<void> {
  if (rules.length === 0) await print("no rules: everything is hidden\n");
  else {
    await printTable(
      ["RULE", "LEVEL", "TYPE", "PRIORITY", "PATTERN"],
      rules.map((rule, index) => [
        String(index),
        wordFor(PERMISSIONS, rule.permission),
        wordFor(PATTERN_TYPES, rule.type),
        String(rule.priority),
        rule.pattern,
      ]),
      { right: ["RULE", "PRIORITY"] },
    );
  }
}

/** What it reaches; a table where that is a list. */
export async function showNetwork({ network, networkRules }: Sandbox): Promise<void> {
  if (network !== NetworkMode.FILTERED) await print(`its network is ${wordFor(NETWORKS, network) || "none"}\n`);
  else if (networkRules.length === 0) await print("no hosts: it reaches nothing\n");
  else {
    await printTable(
      ["HOST", "PORTS", "METHODS", "PATHS"],
      networkRules.map(({ host, ports, methods, paths }) => [
        ...[host, ports.join(",")],
        ...[methods.join(",") || "all", paths.join(" ") || "all"],
      ]),
    );
  }
}

/** One of several states in one line: "sb_… is running". */
export async function showState(sandbox: Sandbox, json: boolean): Promise<void> {
  if (json) return printJson(jsonOf(SandboxSchema, sandbox));
  await print(`${printable(sandbox.id)} is ${wordFor(SANDBOX_STATES, sandbox.status)}\n`);
}

function showLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

function showLimits(limits: ResourceLimits | undefined): string {
  if (limits === undefined) return "";
  const told: readonly (readonly [name: string, value: bigint, text: string])[] = [
    ["memory", limits.memoryBytes, showSize(limits.memoryBytes)],
    ["cpus", limits.cpuQuota, String(Number(limits.cpuQuota) / 100_000)],
    ["shares", limits.cpuShares, String(limits.cpuShares)],
    ["pids", limits.pidsLimit, String(limits.pidsLimit)],
    ["disk", limits.diskBytes, showSize(limits.diskBytes)],
    ["files", limits.diskFiles, String(limits.diskFiles)],
    ["output", limits.outputBytes, showSize(limits.outputBytes)],
  ];
  return told
    .filter(([, value]) => value !== 0n)
    .map(([name, , text]) => `${name} ${text}`)
    .join(", ");
}
