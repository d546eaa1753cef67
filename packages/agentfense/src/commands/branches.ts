import type { SnapshotInfo } from "@agentfense/sdk";
import { UsageError } from "../command-failure.ts";
import { option } from "../option.ts";
import { serverCommand } from "../remote/command.ts";
import { environment, preset, rules } from "../shared-options.ts";
import { tableText } from "../table.ts";
import { printable } from "../terminal.ts";
import { showTime } from "../wording.ts";
import { askedRules, LABEL } from "./sandbox-making.ts";

const snapshot = serverCommand({
  name: "sandbox snapshot",
  summary: "keep a sandbox as it is now",
  about: `Keeps what a sandbox has now, its changes and its own home, to go back to or begin from; nothing that runs in it notices. It stays
when the sandbox is destroyed. Not for a sandbox that syncs after each command.`,
  options: { "": [option({ name: "label", value: "TEXT", about: "what to know it by" })] },
  takes: ["SANDBOX"],
  run: async ({ client, values: { label }, given: [id] }) =>
    `${printable((await client.snapshotSandbox(id, { label })).id)}\n`,
});

const snapshots = serverCommand({
  name: "sandbox snapshots",
  summary: "snapshots of a sandbox, or of all",
  about: "The snapshots of a sandbox, or of all, those of sandboxes that are gone included; the oldest first.",
  usage: "[OPTIONS] [SANDBOX]",
  options: {
    "": [option({ name: "owner", value: "ID", about: "administrators: those of this owner (default: of all)" })],
  },
  takes: ["[SANDBOX]"],
  jsonForm: { list: "snapshots" },
  async run({ client, values: { owner }, given: [sandboxId] }) {
    const found = await client.listSnapshots({ sandboxId, ownerId: owner });
    return tableText(["SNAPSHOT", "SANDBOX", "CREATED", "LABEL"], found.map(rowOf));
  },
});

function rowOf({ id, sandboxId, createdAt, label }: SnapshotInfo): readonly string[] {
  return [id, sandboxId, showTime(createdAt), label];
}

const restore = serverCommand({
  name: "sandbox restore",
  summary: "bring a sandbox back to a snapshot",
  about: `Brings a sandbox back to what it had at a snapshot. What it had since is gone, and so is what runs in it; it runs again if it did.`,
  options: { "": [option({ name: "only-idle", about: "refuse instead of ending processes that run" })] },
  takes: ["SANDBOX", "SNAPSHOT"],
  async run({ client, values, given: [id, snapshotId] }) {
    const processes = values["only-idle"] ? "refuse" : "end";
    const sandbox = await client.restoreSandbox(id, snapshotId, { processes });
    return `${printable(sandbox.id)} is ${sandbox.status}\n`;
  },
});

const fork = serverCommand({
  name: "sandbox fork",
  summary: "make sandboxes of what one has",
  about: `Makes sandboxes of what a sandbox has now, or had at a snapshot: all of them or none. What is not given is as in that
sandbox, but for labels, secrets, home and expiry.`,
  options: {
    Rules: [preset("one of these:"), rules("RULES; with --preset, after its rules")],
    Sandbox: [
      option({ name: "count", value: "N", about: "so many (default 1)", parse: countOf }),
      option({ name: "snapshot", value: "ID", about: "what it had at this snapshot (default: what it has now)" }),
      option({ name: "start", about: "start them at once" }),
      environment("a variable for every command"),
      LABEL,
    ],
  },
  takes: ["SANDBOX"],
  async run({ client, values, given: [id] }) {
    const made = await client.forkSandbox(id, {
      ...(await askedRules(values)),
      count: values.count,
      snapshotId: values.snapshot,
      ...(values.env === undefined ? {} : { env: Object.fromEntries(values.env) }),
      labels: Object.fromEntries(values.label ?? []),
    });
    if (values.start) await Promise.all(made.map((one) => client.startSandbox(one.id)));
    return made.map((one) => `${printable(one.id)}\n`).join("");
  },
});

function countOf(text: string, spelling: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw new UsageError(`${spelling} takes a number above 0, not ${JSON.stringify(text)}`);
}

const forget = serverCommand({
  name: "sandbox delete-snapshot",
  summary: "remove a snapshot",
  about: "Removes a snapshot. Sandboxes that were made of it stay as they are.",
  takes: ["SNAPSHOT"],
  async run({ client, given: [id] }) {
    await client.deleteSnapshot(id);
    return `deleted ${printable(id)}\n`;
  },
});

export const BRANCHES = [snapshot, snapshots, restore, fork, forget];
