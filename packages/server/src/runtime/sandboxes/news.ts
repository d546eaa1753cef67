import { withSecretHosts } from "../../isolation/network/secrets.ts";
import type { CodebaseChange } from "../codebases/api.ts";
import type { SecretChange } from "../secrets/api.ts";
import { endsWithin } from "../waiting.ts";
import type { Parts } from "./parts.ts";

/** Whoever changes a codebase waits for the mounts to know; one that does not answer must not hold up the rest. */
const LONGEST_WAIT_MS = 5_000;

/** Tells the sandboxes of a codebase what changed in it. Resolves when none of them shows what was. */
export async function spreadNews({ registry, log }: Parts, change: CodebaseChange): Promise<void> {
  const paths = change.paths.map((path) => `/${path}`);
  const told = registry.of(change.codebaseId).map(async (registered) => {
    if (registered.record.codebaseVersion !== 0) return;
    for (const path of paths) registered.missed?.add(path);
    try {
      const { sandbox } = registered.running ?? {};
      const shadowed = (await sandbox?.codebaseChanged(paths)) ?? [];
      // What it changed itself went through its mount, and was told there.
      if (change.sandboxId === registered.id) return;
      registered.overtaken(shadowed, change.createdAtMs);
      const own = new Set(shadowed);
      sandbox?.files.changedOutside(paths.filter((path) => !own.has(path)));
    } catch (error) {
      log({ level: "warn", message: "a sandbox could not be told of a change", sandboxId: registered.id, error });
    }
  });
  if (!(await endsWithin(LONGEST_WAIT_MS, Promise.all(told)))) {
    log({ level: "warn", message: `sandboxes did not take note of version ${change.version} in time` });
  }
}

/** Tells the sandboxes that run with an owner's secret that it has another value, or none. */
export async function spreadSecret(
  { registry }: Pick<Parts, "registry">,
  { ownerId, name, secret }: SecretChange,
): Promise<void> {
  const users = [...registry].filter(
    ({ record }) => record.ownerId === ownerId && record.secrets.some((one) => one.name === name && !one.own),
  );
  await Promise.all(
    users.map((registered) =>
      registered.turns.run(async () => {
        const { running } = registered;
        if (running === undefined || running.isEnding) return;
        const isUsed = await running.sandbox.renewSecret(name, secret);
        // A value that it has at its next start is for hosts that it may ask meanwhile, with a placeholder that stands for nothing.
        if (secret !== undefined && !isUsed) return;
        const others = running.secrets.filter((one) => one.name !== name);
        const { hosts, place } = secret ?? {};
        const secrets = hosts && place ? [...others, { name, hosts, place }] : others;
        registered.running = { ...running, secrets };
        await running.sandbox.updateNetwork(withSecretHosts(registered.record.networkRules, secrets));
      }),
    ),
  );
}
