import { e2bFormOf } from "@agentfense/doors/serve";
import { command } from "../command.ts";
import { UsageError } from "../command-failure.ts";
import { withKeeper } from "../keys.ts";
import { option } from "../option.ts";
import { print, printJson, warn } from "../output.ts";
import { SERVER } from "../remote/command.ts";
import { json } from "../shared-options.ts";
import { tableText } from "../table.ts";
import { printable } from "../terminal.ts";

/** Whose keys: those of a server, or of a database. */
const KEEPER = [
  option({
    name: "config",
    value: "FILE",
    kind: "file",
    about: "the server's settings (default: AGENTFENSE_CONFIG, else none)",
  }),
  option({ name: "set", value: "KEY=VALUE", isRepeated: true, about: "any setting by its name, as with serve" }),
  ...SERVER,
] as const;

const WHERE = `Without --endpoint and AGENTFENSE_ENDPOINT, or with --config, this works on the database of the configuration itself; so
the first key is made before the server runs. With an endpoint it asks the server, which takes a key of an administrator.`;

const create = command({
  name: "key create",
  summary: "make an API key",
  usage: "--owner OWNER [OPTIONS]",
  about: `Makes an API key and prints it on stdout. This is the only time that it is shown: the server keeps a hash.

${WHERE}`,
  options: {
    "": [
      option({ name: "owner", value: "OWNER", about: "whose codebases and sandboxes the key opens" }),
      option({
        name: "role",
        value: "ROLE",
        words: ["admin", "user", "read-only"],
        about: "user (default), read-only, or admin: everything of every owner, and keys",
      }),
      option({ name: "name", value: "NAME", about: "to tell it from others" }),
      option({ name: "e2b", about: "print it in the form that older clients of E2B ask for; it opens /e2b/ alone" }),
    ],
    Keys: [...KEEPER, json("{ key, secret } instead")],
  },
  async run({ values }) {
    const { owner = "", role = "user", name = "" } = values;
    if (owner === "") throw new UsageError("key create needs --owner");
    return await withKeeper(values, async (keeper) => {
      const made = await keeper.create({ ownerId: owner, role, name });
      const { key } = made;
      const secret = values.e2b ? e2bFormOf(made.secret) : made.secret;
      if (values.json) return await printJson({ key, secret });
      await print(`${secret}\n`);
      warn(`key ${key.id} for ${key.ownerId} (${key.role}); keep it, it is not shown again`);
    });
  },
});

const list = command({
  name: "key list",
  summary: "the API keys, without their secrets",
  about: `The API keys, without their secrets, which nobody has.

${WHERE}`,
  options: {
    "": [...KEEPER, json("a list of { id, ownerId, role, name, createdAt, revokedAt, lastUsedAt } instead")],
  },
  run: async ({ values }) =>
    await withKeeper(values, async (keeper) => {
      const keys = await keeper.list();
      if (values.json) return await printJson(keys);
      const rows = keys.map((key) => [
        ...[key.id, key.ownerId, key.role, key.name, key.createdAt, key.lastUsedAt, key.revokedAt],
      ]);
      await print(tableText(["ID", "OWNER", "ROLE", "NAME", "CREATED", "LAST USED", "REVOKED"], rows));
    }),
});

const revoke = command({
  name: "key revoke",
  summary: "end an API key",
  about: `Ends a key, at once, also for a server that runs.

${WHERE}`,
  options: { "": [...KEEPER, json("{} instead")] },
  takes: ["ID"],
  wants: "the id of one key",
  run: async ({ values, given: [id] }) =>
    await withKeeper(values, async (keeper) => {
      await keeper.revoke(id);
      await (values.json ? printJson({}) : print(`revoked ${printable(id)}\n`));
    }),
});

export const KEY = [create, list, revoke];
