import { text } from "node:stream/consumers";
import { UsageError } from "../command-failure.ts";
import { option } from "../option.ts";
import { ownerOf, serverCommand } from "../remote/command.ts";
import { parseSecret, parseSource } from "../secret-options.ts";
import { tableText } from "../table.ts";
import { printable } from "../terminal.ts";

const OWNER = option({
  name: "owner",
  value: "ID",
  about: "administrators: whose it is (default: the API key's owner; without a key, your name on this machine)",
});

const put = serverCommand({
  name: "secret put",
  summary: "keep a secret on the server, for sandboxes that name it",
  about: `Keeps a secret on the server, in place of one of that name, for sandboxes that name it. They get a placeholder; the value is put
into requests to these hosts on their way out. SECRET is NAME@HOST[,HOST][=PLACE]; PLACE: bearer (default), basic, body,
'header x-api-key', 'query key'. The value comes from stdin, without its last line end. No call ever gives it back.`,
  options: {
    "": [
      option({
        name: "from",
        value: "SOURCE",
        about: "env:VARIABLE, file:PATH or command:LINE: where else the value is",
      }),
      OWNER,
    ],
  },
  takes: ["SECRET"],
  async run({ client, values: { owner, from }, given: [secret], hasKey }) {
    const { name, ...destination } = parseSecret(secret, "SECRET");
    const source = from === undefined ? { value: await fromInput() } : parseSource(from, FROM);
    await client.putSecret(name, { ...source, ...destination, ownerId: await ownerOf(hasKey, owner) });
    return `keeps ${printable(name)}\n`;
  },
});

const list = serverCommand({
  name: "secret list",
  summary: "the secrets that the server keeps, without their values",
  about: "The secrets that the server keeps: names, hosts, places and times, never values.",
  options: {
    "": [option({ name: "owner", value: "ID", about: "administrators: those of this owner (default: of all)" })],
  },
  jsonForm: { list: "secrets" },
  async run({ client, values: { owner } }) {
    const secrets = await client.listSecrets({ ownerId: owner });
    return tableText(
      ["NAME", "OWNER", "HOSTS", "PLACE", "PUT"],
      secrets.map((one) => [one.name, one.ownerId, one.hosts.join(","), one.in, one.updatedAt.toISOString()]),
    );
  },
});

const remove = serverCommand({
  name: "secret remove",
  summary: "remove a secret from the server",
  about: "Removes a secret from the server. In force at once: sandboxes that run do not send it any more either.",
  options: { "": [OWNER] },
  takes: ["NAME"],
  async run({ client, values: { owner }, given: [name], hasKey }) {
    await client.deleteSecret(name, { ownerId: await ownerOf(hasKey, owner) });
    return `removed ${printable(name)}\n`;
  },
});

const FROM = "--from is env:VARIABLE, file:PATH or command:LINE";

async function fromInput(): Promise<string> {
  if (process.stdin.isTTY) throw new UsageError("the value comes from a pipe or a file on stdin, or --from");
  return (await text(process.stdin)).replace(/\r?\n$/, "");
}

export const SECRET = [put, list, remove];
