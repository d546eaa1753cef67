import { withSecretHosts } from "../../isolation/network/secrets.ts";
import type { SecretChange } from "../secrets/api.ts";
import type { Parts } from "./parts.ts";

/** Tells the sandboxes that run with an owner's secret that it has another value, or none. */
export async function spreadSecret(
  { registry }: Pick<Parts, "registry">,
  { ownerId, name, secret }: SecretChange,
): Promise<void> {
  const users = [...registry].filter(
    ({ record }) => record.ownerId === ownerId && record.secrets.some((one) => one.name === name && !one.own),
  );
  await Promise.all(
    users.map((resident) =>
      resident.turns.run(async () => {
        const { running } = resident;
        if (running === undefined || running.isEnding) return;
        const isUsed = await running.sandbox.renewSecret(name, secret);
        // A value that it has at its next start is for hosts that it may ask meanwhile, with a placeholder that stands for nothing.
        if (secret !== undefined && !isUsed) return;
        const others = running.secrets.filter((one) => one.name !== name);
        const { hosts, place } = secret ?? {};
        const secrets = hosts && place ? [...others, { name, hosts, place }] : others;
        resident.running = { ...running, secrets };
        await running.sandbox.updateNetwork(withSecretHosts(resident.record.networkRules, secrets));
      }),
    ),
  );
}
