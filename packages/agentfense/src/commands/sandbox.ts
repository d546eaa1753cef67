import type { PathExplanation, Rule, RuleCandidate, SandboxInfo } from "@agentfense/sdk";
import { DEFAULT_PRESET } from "@agentfense/sdk/project";
import { UsageError } from "../command-failure.ts";
import { askedNetwork, listedHosts } from "../network-list.ts";
import { option } from "../option.ts";
import { serverCommand } from "../remote/command.ts";
import { askedServerSecrets, SERVER_SECRETS } from "../secret-options.ts";
import { ALLOW, duration, environment, IMAGE, LIMITS, NETWORKS, preset, RUNTIMES, rules } from "../shared-options.ts";
import { recordText, tableText } from "../table.ts";
import { printable, printableSentence } from "../terminal.ts";
import { showSize, showTime } from "../wording.ts";
import { BRANCHES } from "./branches.ts";
import { versionNumber } from "./codebase.ts";
import { INSIDE } from "./sandbox-inside.ts";
import { askedRules, LABEL } from "./sandbox-making.ts";

const RULES = [preset("one of these:"), rules("RULES; with --preset, after its rules")] as const;

const create = serverCommand({
  name: "sandbox create",
  summary: "make a sandbox on a codebase",
  about: `Makes a sandbox on a codebase. Without rules it gets the preset ${DEFAULT_PRESET}.`,
  options: {
    Rules: [...RULES, option({ name: "revocable", about: "later rule changes reach files that are already open" })],
    Sandbox: [
      option({ name: "start", about: "start it at once" }),
      option({
        name: "version",
        value: "N",
        about: "on version N of the codebase (default: always the newest)",
        parse: versionNumber,
      }),
      option({
        name: "sync",
        value: "MODE",
        words: ["on-exec", "manual", "never"],
        about: "when changes go to the codebase: on-exec (after each command), manual or never",
      }),
      option({ name: "runtime", value: "NAME", words: RUNTIMES, about: "bwrap or docker (default: the server's)" }),
      IMAGE,
      option({
        name: "network",
        value: "MODE",
        words: NETWORKS,
        about: "none (default), filtered, private or host, as far as the server allows",
      }),
      ...ALLOW,
      environment("a variable for every command"),
      ...SERVER_SECRETS,
      option({
        name: "home",
        value: "NAME",
        about: "a home (~) that outlives the sandbox, made when it is first used; one sandbox at a time runs with it",
      }),
      LABEL,
      option({
        name: "idle-pause",
        value: "TIME",
        about: "pause it when nothing was asked of it for 10m …, until the next command (default: the server's)",
        parse: duration,
      }),
      option({
        name: "expires",
        value: "TIME",
        about: "destroy it after 30m, 24h … (default: the server's)",
        parse: duration,
      }),
    ],
    Limits: LIMITS,
  },
  takes: ["CODEBASE"],
  async run({ client, values, given: [codebaseId] }) {
    const { memory, cpus, pids, disk } = values;
    const sandbox = await client.createSandbox({
      codebaseId,
      ...(await askedRules(values)),
      codebaseVersion: values.version,
      revocable: values.revocable,
      sync: values.sync,
      runtime: values.runtime,
      network: askedNetwork(values),
      image: values.image,
      home: values.home,
      secrets: askedServerSecrets(values),
      env: Object.fromEntries(values.env ?? []),
      labels: Object.fromEntries(values.label ?? []),
      resources: { memoryBytes: memory, cpuQuota: cpus, pidsLimit: pids, diskBytes: disk },
      idlePauseMs: values["idle-pause"],
      expiresInMs: values.expires,
    });
    return sandboxText(values.start ? await client.startSandbox(sandbox.id) : sandbox);
  },
});

const list = serverCommand({
  name: "sandbox list",
  summary: "sandboxes and their states",
  about: "The sandboxes that you may see.",
  options: {
    "": [
      option({ name: "codebase", value: "ID", about: "only those on this codebase" }),
      option({ name: "owner", value: "OWNER", about: "only this owner's" }),
      option({
        name: "status",
        value: "STATUS",
        words: ["pending", "running", "paused", "stopped", "error"],
        about: "only pending, running, paused, stopped or error",
      }),
      option({ ...LABEL, about: "only those with this label (may be repeated)" }),
    ],
  },
  jsonForm: { list: "sandboxes" },
  async run({ client, values: { codebase, owner, status, label = [] } }) {
    const filter = { codebaseId: codebase, ownerId: owner, status, labels: Object.fromEntries(label) };
    const sandboxes = await client.listSandboxes({ ...filter, pageSize: 1000 }).toArray();
    return tableText(
      ["ID", "CODEBASE", "OWNER", "STATUS", "RUNTIME", "CREATED", "EXPIRES", "LABELS"],
      sandboxes.map((sandbox) => [
        sandbox.id,
        sandbox.codebaseId,
        sandbox.ownerId,
        sandbox.status,
        sandbox.runtime,
        showTime(sandbox.createdAt),
        showTime(sandbox.expiresAt),
        labelsText(sandbox.labels),
      ]),
    );
  },
});

const show = serverCommand({
  name: "sandbox show",
  summary: "everything about one sandbox",
  about: "Everything about a sandbox.",
  takes: ["SANDBOX"],
  run: async ({ client, given: [id] }) => sandboxText(await client.getSandbox(id)),
});

const start = serverCommand({
  name: "sandbox start",
  summary: "make a sandbox ready for commands",
  about: "Mounts its files and makes it ready for commands.",
  takes: ["SANDBOX"],
  run: async ({ client, given: [id] }) => stateText(await client.startSandbox(id)),
});

const stop = serverCommand({
  name: "sandbox stop",
  summary: "end everything that runs in a sandbox",
  about: "Ends everything that runs in it. What it changed stays.",
  takes: ["SANDBOX"],
  run: async ({ client, given: [id] }) => stateText(await client.stopSandbox(id)),
});

const pause = serverCommand({
  name: "sandbox pause",
  summary: "hold everything in a sandbox still",
  about: `Holds all that runs in it still, as it is, until agentfense sandbox resume. Its files and changes can be read, written and
applied meanwhile; commands are refused. The time limits of commands that run count on.`,
  takes: ["SANDBOX"],
  run: async ({ client, given: [id] }) => stateText(await client.pauseSandbox(id)),
});

const resume = serverCommand({
  name: "sandbox resume",
  summary: "let a paused sandbox go on",
  about: "Lets a paused sandbox go on where it stood.",
  takes: ["SANDBOX"],
  run: async ({ client, given: [id] }) => stateText(await client.resumeSandbox(id)),
});

const destroy = serverCommand({
  name: "sandbox destroy",
  summary: "end sandboxes and throw away their changes",
  usage: "[OPTIONS] SANDBOX…",
  about: "Ends sandboxes and throws away what they changed and did not write to their codebases.",
  takes: ["SANDBOX", "[SANDBOX…]"],
  async run({ client, given: [first], more, json }) {
    for (const id of [first, ...more]) {
      await client.destroySandbox(id);
      if (!json) process.stdout.write(`destroyed ${printable(id)}\n`);
    }
    return "";
  },
});

const permissions = serverCommand({
  name: "sandbox permissions",
  summary: "the rules of a sandbox, or new ones",
  about: "The rules of a sandbox. With --preset or --rules it gets these instead, at once, also while it runs.",
  options: { "": RULES },
  takes: ["SANDBOX"],
  async run({ client, values, given: [id] }) {
    const asked = await askedRules(values);
    const sandbox = asked === undefined ? await client.getSandbox(id) : await client.updatePermissions(id, asked);
    return rulesTable(sandbox.permissions);
  },
});

const network = serverCommand({
  name: "sandbox network",
  summary: "the hosts that a sandbox may reach, or others",
  about: `What a sandbox with the network filtered may reach. With --allow or --allow-preset it gets this list instead, at once, also
while it runs: connections that are no longer allowed are cut.`,
  options: { "": [...ALLOW, option({ name: "none", about: "an empty list: it reaches nothing" })] },
  takes: ["SANDBOX"],
  async run({ client, values, given: [id] }) {
    const listed = listedHosts(values);
    if (values.none && listed !== undefined) throw new UsageError("give --none or hosts, not both");
    const wanted = values.none ? {} : listed;
    return networkText(wanted === undefined ? await client.getSandbox(id) : await client.updateNetwork(id, wanted));
  },
});

const explain = serverCommand({
  name: "sandbox explain",
  summary: "which rule decides about a path in a sandbox",
  usage: "[OPTIONS] SANDBOX PATH…",
  about: "For each PATH: its level, the rule that decides, and the rules that count for it but lost.",
  takes: ["SANDBOX", "PATH", "[PATH…]"],
  jsonForm: "all",
  async run({ client, given: [id, first], more }) {
    const answers: string[] = [];
    for (const path of [first, ...more]) answers.push(explanationText(await client.explainPath(id, path)));
    return answers.join("\n");
  },
});

export const SANDBOX = [
  ...[create, list, show, start, stop, pause, resume, destroy],
  ...BRANCHES,
  ...INSIDE,
  ...[permissions, network, explain],
];

function sandboxText(sandbox: SandboxInfo): string {
  const { networkRules, idlePauseMs } = sandbox;
  return recordText([
    ["id", sandbox.id],
    ["codebase", sandbox.codebaseId],
    ["version", sandbox.codebaseVersion === 0 ? "newest" : String(sandbox.codebaseVersion)],
    ["owner", sandbox.ownerId],
    ["status", sandbox.status],
    ["reason", sandbox.statusReason],
    ["runtime", sandbox.runtime],
    ["image", sandbox.image],
    ["network", sandbox.network],
    ["hosts", networkRules.map(({ host, ports = [] }) => `${host}:${ports.join(",")}`).join(" ")],
    ["sync", sandbox.sync],
    ["home", sandbox.home],
    ["limits", limitsText(sandbox.resources)],
    ["labels", labelsText(sandbox.labels)],
    ["created", showTime(sandbox.createdAt)],
    ["started", showTime(sandbox.startedAt)],
    ["stopped", showTime(sandbox.stoppedAt)],
    ["expires", showTime(sandbox.expiresAt)],
    ["idle pause", idlePauseMs === 0 ? "" : `${idlePauseMs / 1000} s`],
    ["rules", String(sandbox.permissions.length)],
  ]);
}

/** One of several states in one line: "sb_… is running". */
function stateText({ id, status }: SandboxInfo): string {
  return `${printable(id)} is ${status}\n`;
}

function labelsText(labels: SandboxInfo["labels"]): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

const LIMIT_NAMES = {
  memoryBytes: ["memory", showSize],
  cpuQuota: ["cpus", (quota) => String(quota / 100_000)],
  cpuShares: ["shares", String],
  pidsLimit: ["pids", String],
  diskBytes: ["disk", showSize],
  diskFiles: ["files", String],
  outputBytes: ["output", showSize],
} as const satisfies Record<keyof SandboxInfo["resources"], readonly [name: string, show: (value: number) => string]>;

function limitsText(limits: SandboxInfo["resources"]): string {
  return (Object.keys(LIMIT_NAMES) as (keyof typeof LIMIT_NAMES)[])
    .flatMap((limit) => {
      const [name, text] = LIMIT_NAMES[limit];
      const value = limits[limit];
      return value === undefined ? [] : [`${name} ${text(value)}`];
    })
    .join(", ");
}

function rulesTable(all: readonly Rule[]): string {
  if (all.length === 0) return "no rules: everything is hidden\n";
  return tableText(
    ["RULE", "LEVEL", "TYPE", "PRIORITY", "PATTERN"],
    all.map(({ permission, type = "", priority = 0, pattern }, index) => [
      ...[String(index), permission, type, String(priority), pattern],
    ]),
    { right: ["RULE", "PRIORITY"] },
  );
}

/** What it reaches; a table where that is a list. */
function networkText({ network: mode, networkRules }: SandboxInfo): string {
  if (mode !== "filtered") return `its network is ${mode}\n`;
  if (networkRules.length === 0) return "no hosts: it reaches nothing\n";
  return tableText(
    ["HOST", "PORTS", "METHODS", "PATHS"],
    networkRules.map(({ host, ports = [], methods = [], paths = [] }) => [
      ...[host, ports.join(",")],
      ...[methods.join(",") || "all", paths.join(" ") || "all"],
    ]),
  );
}

function explanationText({ path, permission, deciding, losing, text }: PathExplanation): string {
  const why = deciding === undefined ? printableSentence(text) : `decides  ${candidateText(deciding)}`;
  const lost = losing.map((candidate) => {
    return `  loses    ${candidateText(candidate)}: ${printableSentence(candidate.reason)}\n`;
  });
  return `${printable(path)}  ${permission}\n  ${why}\n${lost.join("")}`;
}

function candidateText({ index, rule }: RuleCandidate): string {
  const { pattern, permission, type = "", priority = 0 } = rule;
  return `rule ${index}: ${printable(pattern)} ${permission} (${type}, priority ${priority})`;
}
