import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, SandboxClient } from "@agentfense/sdk";
import { openServer, type RunningServer } from "@agentfense/server";
import { loadConfiguration } from "@agentfense/server/configuration";
import { openKeys, openSqliteStore } from "@agentfense/server/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { searchProcesses } from "../../support/box-memory.ts";
import { eventually } from "../../support/eventually.ts";
import { reasonAgainst } from "../../support/identity.ts";
import { GOOD_ADDRESS, type Internet, openInternet } from "../../support/internet.ts";

// One server of an operator, with keys and two owners, and an internet of its own.

const KEPT = "sk-ant-api03-Kk1Jj2Hh3Gg4Ff5Dd6Ss7Aa8";
const REPLACED = "sk-ant-api03-Zz9Yy8Xx7Ww6Vv5Uu4Tt3Rr2";
const LONGER = "sk-ant-api03-Mm1Nn2Bb3Vv4Cc5Xx6Zz7Ll8Kk9";
const OWN = "ghp_Q1w2E3r4T5y6U7i8O9p0A1s2D3f4G5h6J7k8";
const VALUES = [KEPT, REPLACED, LONGER, OWN];

const reason = reasonAgainst("root");
if (reason !== undefined) console.log(`secrets on a server are not tried: ${reason}`);

let directory: string;
let internet: Internet;
let server: RunningServer | undefined;
let keys: { alice: string; mallory: string };
let sandboxId: string;
/** All that was ever logged, and all that clients were ever told. */
const told: string[] = [];

const keyFile = () => join(directory, "sealing.keys");
const newKey = (): string => randomBytes(32).toString("base64");

async function start(more: Readonly<Record<string, string>> = {}): Promise<void> {
  const env = {
    AGENTFENSE_SERVER_GRPC_ADDR: "127.0.0.1:0",
    AGENTFENSE_SERVER_HTTP_ADDR: "127.0.0.1:0",
    AGENTFENSE_STORAGE_CODEBASE_PATH: join(directory, "codebases"),
    AGENTFENSE_STORAGE_MOUNT_PATH: join(directory, "mounts"),
    AGENTFENSE_STORAGE_DB_PATH: join(directory, "metadata.db"),
    AGENTFENSE_RUNTIME_NETWORKS: "none,filtered",
    AGENTFENSE_AUTH_KEYS: "required",
    AGENTFENSE_SECRETS_KEY_FILE: keyFile(),
    ...more,
  };
  const { config } = await loadConfiguration({ env, flags: [] });
  const { network: _, ...seam } = internet.seam;
  const log = (entry: object) => void told.push(JSON.stringify(entry));
  server = await openServer(config, { log, internet: { ...seam, certificates: [internet.ca] } });
  await server.ready;
}

async function stop(): Promise<void> {
  await server?.shutDown();
  server = undefined;
}

const clientOf = (owner: "alice" | "mallory"): SandboxClient =>
  new SandboxClient({ endpoint: server!.grpcAddress, apiKey: keys[owner], retries: 0 });

async function rest(owner: "alice" | "mallory", method: string, path: string, body?: unknown) {
  const answer = await fetch(`http://${server!.httpAddress}${path}`, {
    method,
    headers: { authorization: `Bearer ${keys[owner]}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  told.push(text);
  return { status: answer.status, json: JSON.parse(text) };
}

async function sh(command: string): Promise<string> {
  await using client = clientOf("alice");
  const { stdout, stderr } = await client.exec(sandboxId, command);
  told.push(stdout, stderr);
  return stdout;
}

/** The values of a header in the requests that reached the host since the last look. */
function received(name: string): (string | undefined)[] {
  return internet.seen.splice(0).map(({ headers }) => {
    const at = headers.findIndex((one, index) => index % 2 === 0 && one.toLowerCase() === name);
    return at === -1 ? undefined : headers[at + 1];
  });
}

const sendKept = () => sh('curl -sS -H "x-api-key: $KEPT" https://api.test/');

async function events(): Promise<{ type: string; data: Readonly<Record<string, unknown>> }[]> {
  await using client = clientOf("alice");
  const found: unknown[] = [];
  for await (const event of client.listEvents()) found.push(event);
  told.push(JSON.stringify(found));
  return found as never;
}

beforeAll(async () => {
  if (reason !== undefined) return;
  directory = mkdtempSync(join(tmpdir(), "agentfense-served-secrets-"));
  internet = await openInternet({
    "api.test": [GOOD_ADDRESS],
    "git.test": [GOOD_ADDRESS],
    "other.test": [GOOD_ADDRESS],
  });
  writeFileSync(keyFile(), `${newKey()}\n`, { mode: 0o600 });
  await using store = await openSqliteStore({ path: join(directory, "metadata.db") });
  const made = openKeys({ store });
  const create = async (ownerId: string) => (await made.create({ ownerId, role: "user", name: "" })).secret;
  keys = { alice: await create("alice"), mallory: await create("mallory") };
});

afterAll(async () => {
  if (reason !== undefined) return;
  await stop();
  await internet?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

describe.skipIf(reason !== undefined)("secrets on a server", () => {
  test("are put, listed without their values, and used by sandboxes that name them, beside such of their own", async () => {
    await start();
    await using client = clientOf("alice");
    const facts = { name: "KEPT", ownerId: "alice", hosts: ["api.test"], in: "header x-api-key" };
    const source = { value: KEPT, hosts: ["api.test"], in: "header X-Api-Key" } as const;
    expect(await client.putSecret("KEPT", source)).toMatchObject(facts);
    expect(await client.listSecrets()).toEqual([
      { ...facts, createdAt: expect.any(Date), updatedAt: expect.any(Date) },
    ]);
    const listed = { name: "KEPT", ownerId: "alice", hosts: ["api.test"], place: "header x-api-key" };
    expect((await rest("alice", "GET", "/v1/secrets")).json).toEqual({
      secrets: [{ ...listed, createdAt: expect.any(String), updatedAt: expect.any(String) }],
    });
    writeFileSync(join(directory, "token"), `${OWN}\n`);
    const codebase = await client.createCodebase({ name: "project" });
    const made = await client.createSandbox({
      codebaseId: codebase.id,
      permissions: [{ pattern: "**", permission: "write" }],
      secrets: { KEPT: "kept", TOKEN: { file: join(directory, "token"), hosts: ["git.test"], in: "bearer" } },
    });
    expect(made).toMatchObject({ network: "filtered", networkRules: [], secrets: ["KEPT", "TOKEN"] });
    sandboxId = made.id;
    await client.startSandbox(sandboxId);
    expect(await sh("echo $KEPT $TOKEN")).toMatch(/^sk-ant-api03-[A-Za-z0-9]{24} ghp_[A-Za-z0-9]{36}\n$/);
  });

  test("arrive at their hosts, in their places, from curl, node and Python, and nowhere else", async () => {
    const clients = {
      curl: 'curl -sS -H "x-api-key: $KEPT" https://api.test/',
      node: `node -e "fetch('https://api.test/', { headers: { 'x-api-key': process.env.KEPT } }).then((r) => r.text())"`,
      python3: `/usr/bin/python3 -c "import os, urllib.request as r; r.urlopen(r.Request('https://api.test/', headers={'x-api-key': os.environ['KEPT']}))"`,
    };
    for (const [name, line] of Object.entries(clients)) {
      if (!existsSync(`/usr/bin/${name}`)) continue;
      await sh(line);
      expect(received("x-api-key"), name).toEqual([KEPT]);
    }
    await sh('curl -sS -H "Authorization: Bearer $TOKEN" https://git.test/');
    expect(received("authorization")).toEqual([`Bearer ${OWN}`]);
    const placeholder = (await sh("echo $TOKEN")).trim();
    await sh('curl -sS -H "Authorization: Bearer $TOKEN" https://api.test/');
    expect(received("authorization")).toEqual([`Bearer ${placeholder}`]);
  });

  test("NET-09 are in no environment, command line or memory of the box's processes", async () => {
    await using client = clientOf("alice");
    const placeholder = (await sh("printf %s $KEPT")).trim();
    const output = client.execStream(sandboxId, 'sleep 1000 & curl -sS -H "x-api-key: $KEPT" https://api.test/never');
    const ended = (async () => {
      for await (const _ of output);
    })().catch(() => {});
    await eventually(() => expect(received("x-api-key")).toEqual([KEPT]));
    const found = searchProcesses({ placeholder, value: KEPT });
    expect(found.processes).toBeGreaterThanOrEqual(3);
    expect(found).toMatchObject({ placeholder: found.processes, value: 0 });
    await sh("pkill curl; pkill sleep; true");
    await ended;
  });

  test("are for another owner as absent as those that never were", async () => {
    await using mallory = clientOf("mallory");
    expect(await mallory.listSecrets()).toEqual([]);
    expect(await mallory.listSecrets({ ownerId: "alice" })).toEqual([]);
    const refusal = async (work: Promise<unknown>) =>
      await work.then(
        () => "done",
        ({ code, message }: { code: string; message: string }) => `${code}: ${message}`,
      );
    const codebase = await mallory.createCodebase({ name: "hers" });
    const naming = (name: string) => mallory.createSandbox({ codebaseId: codebase.id, secrets: [name] });
    for (const attempt of [
      (name: string) => mallory.deleteSecret(name),
      (name: string) => mallory.deleteSecret(name, { ownerId: "alice" }),
      naming,
    ]) {
      const never = await refusal(attempt("NEVER"));
      expect(never).toMatch(/^SECRET_NOT_FOUND: there is no secret NEVER/);
      expect(await refusal(attempt("KEPT"))).toBe(never.replace("NEVER", "KEPT"));
    }
    const source = { value: "her own value", hosts: ["evil.test"], in: "bearer" } as const;
    expect(await refusal(mallory.putSecret("KEPT", { ...source, ownerId: "alice" }))).toMatch(/^INVALID_ARGUMENT/);
    await mallory.putSecret("KEPT", source);
    await sendKept();
    expect(received("x-api-key")).toEqual([KEPT]);
    await mallory.deleteSecret("KEPT");
  });

  test("go where they were put for: whoever names a kept one cannot name other hosts for it", async () => {
    const body = { codebase_id: "cb_0", secrets: [{ name: "KEPT", hosts: ["evil.test"], place: "bearer" }] };
    const { codebaseId } = await clientOf("alice").getSandbox(sandboxId);
    const { status, json } = await rest("alice", "POST", "/v1/sandboxes", { ...body, codebase_id: codebaseId });
    expect([status, json.message]).toEqual([400, "the secret KEPT has the hosts and the place that it was put with"]);
  });

  test("are refused with the reason, and no refusal says anything of a value", async () => {
    const put = async (body: unknown) => {
      const { status, json } = await rest("alice", "PUT", "/v1/secrets/BAD", body);
      return [status, json.message];
    };
    const right = { value: KEPT, hosts: ["api.test"], place: "bearer" };
    expect(await put({ ...right, place: "cookie" })).toEqual([400, 'the secret BAD cannot be put in "cookie"']);
    expect(await put({ ...right, hosts: [] })).toEqual([
      400,
      "the secret BAD needs hosts that it may be sent to, 32 at most",
    ]);
    expect(await put({ ...right, value: `${KEPT}\n` })).toEqual([
      400,
      "the value of the secret BAD has other characters than those of one line of plain ASCII",
    ]);
    expect((await put({ ...right, value: { deep: KEPT } }))[0]).toBe(400);
    expect((await put(`{"value": "${KEPT}`))[0]).toBe(400);
    expect((await rest("alice", "PUT", `/v1/secrets/BAD?value=${KEPT}`, {}))[0 as never]).toBeUndefined();
    expect(told.at(-1)).not.toContain(KEPT);
  });

  test("come back with the sandbox when the server is started again", async () => {
    const before = await sh("echo $KEPT");
    await stop();
    await start();
    expect(await sh("echo $KEPT")).not.toBe(before); // a new life has new placeholders
    await sendKept();
    await sh('curl -sS -H "Authorization: Bearer $TOKEN" https://git.test/');
    expect(received("x-api-key")[0]).toBe(KEPT);
  });

  test("that are replaced are sent at once if they are as long, and the old one no more in any case", async () => {
    await using client = clientOf("alice");
    const placeholder = (await sh("echo $KEPT")).trim();
    const put = (value: string) => client.putSecret("KEPT", { value, hosts: ["api.test"], in: "header x-api-key" });
    internet.seen.splice(0);
    await put(REPLACED);
    await sendKept();
    await put(LONGER);
    await sendKept();
    expect(received("x-api-key")).toEqual([REPLACED, placeholder]);
    await client.stopSandbox(sandboxId);
    await client.startSandbox(sandboxId);
    await sendKept();
    expect(received("x-api-key")).toEqual([LONGER]);
    await put(KEPT);
    await client.stopSandbox(sandboxId);
    await client.startSandbox(sandboxId);
  });

  test("are sealed anew with a new key at the next start, after which the old one can go", async () => {
    await stop();
    const [old, next] = [readFileSync(keyFile(), "utf8"), newKey()];
    writeFileSync(keyFile(), `# of today\n${next}\n${old}`);
    await start();
    expect(told.join("\n")).toMatch(/2 secret\(s\) were sealed anew with the key [0-9a-f]{16}/);
    await stop();
    writeFileSync(keyFile(), `${next}\n`);
    await start();
    await sendKept();
    expect(received("x-api-key")).toEqual([KEPT]);
  });

  test("keep a server without their key from starting, and nothing of them is lost", async () => {
    await stop();
    const right = readFileSync(keyFile(), "utf8");
    writeFileSync(keyFile(), `${newKey()}\n`);
    await expect(start()).rejects.toThrow(
      /^2 secret\(s\) were sealed with the key [0-9a-f]{16}, and secrets.key_file does not have it: /,
    );
    await expect(start({ AGENTFENSE_SECRETS_KEY_FILE: "" })).rejects.toThrow(/and no secrets.key_file is set: put/);
    for (const [text, problem] of [
      ["", "it has no key"],
      ["c2hvcnQ=\n", "line 1 is no key: 32 random bytes in base64 are"],
    ]) {
      writeFileSync(keyFile(), text!);
      await expect(start()).rejects.toThrow(`secrets.key_file: ${keyFile()} cannot be used: ${problem}`);
    }
    await expect(start({ AGENTFENSE_SECRETS_KEY_FILE: join(directory, "none") })).rejects.toThrow(/ENOENT/);
    writeFileSync(keyFile(), right);
    await start();
    await sendKept();
    expect(received("x-api-key")).toEqual([KEPT]);
  });

  test("whose key is lost are named by an operator, and fail by themselves until they are put again", async () => {
    await stop();
    const right = readFileSync(keyFile(), "utf8");
    writeFileSync(keyFile(), `${newKey()}\n`);
    const message = await start().catch((error: Error) => error.message);
    const [lost = ""] = /[0-9a-f]{16}/.exec(String(message)) ?? [];
    await start({ AGENTFENSE_SECRETS_LOST_KEYS: lost });
    await using client = clientOf("alice");
    expect(await client.getSandbox(sandboxId)).toMatchObject({
      status: "stopped",
      statusReason: `the secret KEPT was sealed with the key ${lost}, which this server does not have`,
    });
    await stop();
    writeFileSync(keyFile(), right);
    await start();
    await using again = clientOf("alice");
    await again.startSandbox(sandboxId);
    await sendKept();
    expect(received("x-api-key")).toEqual([KEPT]);
  });

  test("that are deleted are sent no more, by sandboxes that run too, whose next start says why it fails", async () => {
    await using client = clientOf("alice");
    const placeholder = (await sh("echo $KEPT")).trim();
    const kept = client.exec(sandboxId, 'curl -sS -H "x-api-key: $KEPT" https://api.test/never');
    await eventually(() => expect(received("x-api-key")).toEqual([KEPT]));
    await client.deleteSecret("KEPT");
    expect((await kept).exitCode).not.toBe(0);
    await client.updateNetwork(sandboxId, { allow: ["api.test"] });
    await sendKept();
    expect(received("x-api-key")).toEqual([placeholder]);
    await client.stopSandbox(sandboxId);
    await expect(client.startSandbox(sandboxId)).rejects.toMatchObject({
      code: "SECRET_NOT_FOUND",
      message: "there is no secret KEPT",
    });
  });

  test("are told of by name when they are put, used, deleted", async () => {
    const found = await events();
    const of = (type: string) => found.filter((event) => event.type === type).map(({ data }) => data);
    expect(of("secret_put")[0]).toEqual({ secret: "KEPT", hosts: ["api.test"], place: "header x-api-key" });
    expect(of("secret_used")).toContainEqual({ secret: "KEPT", host: "api.test", port: 443, count: 1 });
    expect(of("secret_deleted")).toEqual([{ secret: "KEPT" }]);
    expect(of("sandbox_created")[0]).toMatchObject({ secrets: ["KEPT", "TOKEN"] });
  });

  test("NET-09 were in the clear in no file of the server, no log, no event and no answer, while it ran and after", async () => {
    const search = (text: string) => filesBelow(directory).filter((path) => readFileSync(path).includes(text));
    const own = join(directory, "token");
    const names = () => search("KEPT").map((path) => path.slice(directory.length + 1));
    expect(names()).toContain("metadata.db-wal");
    expect(VALUES.flatMap(search)).toEqual([own]);
    await stop();
    expect(names()).toContain("metadata.db");
    expect(VALUES.flatMap(search)).toEqual([own]);
    expect(told.join("\n")).toContain("KEPT");
    expect(VALUES.filter((value) => told.join("\n").includes(value))).toEqual([]);
    await start({ AGENTFENSE_SECRETS_KEY_FILE: keyFile() });
  });

  test("of a process that holds them leave no image of its memory", () => {
    const [, soft] = /^Max core file size +(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    expect(soft).toMatch(/^[01]$/);
  });
});

test.skipIf(reason !== undefined)("a server without a key keeps none, and says how to make one", async () => {
  await stop();
  const other = mkdtempSync(join(tmpdir(), "agentfense-unsealed-"));
  await using _ = { [Symbol.asyncDispose]: async () => rmSync(other, { recursive: true }) };
  await start({
    AGENTFENSE_SECRETS_KEY_FILE: "",
    AGENTFENSE_AUTH_KEYS: "off",
    AGENTFENSE_STORAGE_CODEBASE_PATH: join(other, "codebases"),
    AGENTFENSE_STORAGE_MOUNT_PATH: join(other, "mounts"),
    AGENTFENSE_STORAGE_DB_PATH: join(other, "metadata.db"),
  });
  await using client = new SandboxClient({ endpoint: server!.grpcAddress });
  const source = { value: KEPT, hosts: ["api.test"], in: "bearer" } as const;
  const refusal = {
    code: "SEALING_KEY_MISSING",
    hint: expect.stringContaining("head -c 32 /dev/urandom | base64 > FILE"),
  };
  await expect(client.putSecret("KEY", { ...source, ownerId: "alice" })).rejects.toMatchObject(refusal);
  await expect(Sandbox.create({ client, secrets: { KEY: source } })).rejects.toMatchObject(refusal);
  expect(await Array.fromAsync(client.listSandboxes())).toEqual([]);
  await stop();
});

function filesBelow(top: string): string[] {
  return readdirSync(top, { recursive: true, encoding: "utf8" })
    .map((name) => join(top, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile());
}
