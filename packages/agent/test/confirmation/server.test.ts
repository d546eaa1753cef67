import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openServer, type RunningServer } from "@agentfense/server";
import { loadConfiguration } from "@agentfense/server/configuration";
import { type Keys, openKeys, openSqliteStore } from "@agentfense/server/runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { ConfirmationBroker } from "../../src/confirmation/broker.ts";
import { RemoteConfirmationService } from "../../src/confirmation/client/remote-service.ts";
import { ConfirmationReviewer } from "../../src/confirmation/client/reviewer.ts";
import { confirmationDoor } from "../../src/confirmation/door/door.ts";
import { isApproval } from "../../src/confirmation/hash.ts";
import { RawPeer, request } from "./support.ts";

// The door at a real server: what it relies upon is there.

const ALLOWED_ORIGIN = "https://console.example.org";

interface GivenKey {
  readonly id: string;
  readonly secret: string;
}

let directory: string;
let server: RunningServer;
let endpoint: string;
let keys: Keys;
let admin: GivenKey;
let agent: GivenKey;
let alice: GivenKey;
let reader: GivenKey;
let mallory: GivenKey;
const broker = new ConfirmationBroker();
const opened = new AsyncDisposableStack();

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "agentfense-confirmation-"));
  opened.defer(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "agentfense.yaml");
  const settings = {
    server: { grpc_addr: "127.0.0.1:0", http_addr: "127.0.0.1:0", allowed_origins: [ALLOWED_ORIGIN] },
    auth: { keys: "required" },
    storage: {
      codebase_path: join(directory, "codebases"),
      mount_path: join(directory, "mounts"),
      db_path: join(directory, "metadata.db"),
    },
  };
  writeFileSync(file, JSON.stringify(settings)); // JSON is YAML
  const { config } = await loadConfiguration({ file, env: {}, flags: [] });
  server = await openServer(config, { log: () => {}, doors: [confirmationDoor(broker)] });
  opened.defer(() => server.shutDown());
  endpoint = `http://${server.httpAddress}`;
  keys = openKeys({ store: opened.use(await openSqliteStore({ path: config.storage.db_path })) });
  const make = async (ownerId: string, role: "admin" | "user" | "read-only"): Promise<GivenKey> => {
    const { key, secret } = await keys.create({ ownerId, role, name: "" });
    return { id: key.id, secret };
  };
  admin = await make("operator", "admin");
  agent = await make("alice", "user");
  alice = await make("alice", "user");
  reader = await make("alice", "read-only");
  mallory = await make("mallory", "user");
});

afterAll(() => opened.disposeAsync());

const open = (key: GivenKey, headers: Record<string, string> = {}): Promise<RawPeer> =>
  RawPeer.open({ endpoint }, { headers: { authorization: `Bearer ${key.secret}`, ...headers } });

test("an agent asks, a person answers, each with a key of the same owner", async () => {
  await using reviewer = await ConfirmationReviewer.connect({ endpoint, apiKey: alice.secret, name: "Alice" });
  await using stranger = await ConfirmationReviewer.connect({ endpoint, apiKey: mallory.secret });
  await using operator = await ConfirmationReviewer.connect({ endpoint, apiKey: admin.secret });
  const asked = request();
  const asking = new RemoteConfirmationService({ endpoint, apiKey: agent.secret }).request(asked);
  await eventually(() => reviewer.pending.length === 1 && operator.pending.length === 1);
  expect(operator.pending[0]).toMatchObject({ ownerId: "alice", request: asked });
  expect(stranger.pending).toEqual([]);
  expect(await reviewer.answer(reviewer.pending[0]!.id, true)).toEqual({ accepted: true });
  const answer = await asking;
  expect(answer.reviewer).toBe(`${alice.id} (Alice)`);
  expect(isApproval(answer, asked)).toBe(true);
  await eventually(() => operator.pending.length === 0);
});

test("a wrong key, and none, are not let in", async () => {
  const wrong = { id: "", secret: alice.secret.replace(/.$/, (last) => (last === "A" ? "B" : "A")) };
  await expect(open(wrong)).rejects.toThrow("HTTP 401");
  await expect(RawPeer.open({ endpoint }, { headers: {} })).rejects.toThrow("HTTP 401");
  await expect(ConfirmationReviewer.connect({ endpoint, apiKey: wrong.secret })).rejects.toThrow("HTTP 401");
  const denied = await new RemoteConfirmationService({ endpoint, apiKey: wrong.secret }).request(request());
  expect(denied.decision).toBe("denied");
  expect((await fetch(`${endpoint}/v1/confirmations`)).status).toBe(401);
});

test("a page from elsewhere is not let in, even with a key; an allowed one and our own are", async () => {
  for (const origin of ["https://evil.example.org", "null", "http://localhost:1"]) {
    await expect(open(alice, { origin })).rejects.toThrow("HTTP 403");
  }
  for (const origin of [ALLOWED_ORIGIN, endpoint]) {
    using peer = await open(alice, { origin });
    peer.send({ type: "hello", role: "reviewer" });
    await peer.next("welcome");
  }
});

test("a browser's key comes as a subprotocol", async () => {
  const offer = (secret: string) => [
    "agentfense.confirmations.v1",
    `agentfense.key.${Buffer.from(secret).toString("base64url")}`,
  ];
  const headers = { origin: ALLOWED_ORIGIN };
  using peer = await RawPeer.reviewer({ endpoint }, { headers, protocols: offer(alice.secret) });
  expect(peer.socket.protocol).toBe("agentfense.confirmations.v1");
  await expect(RawPeer.open({ endpoint }, { headers, protocols: offer("af_guess") })).rejects.toThrow("HTTP 401");
});

test("a read-only key watches", async () => {
  await using watcher = await ConfirmationReviewer.connect({ endpoint, apiKey: reader.secret });
  expect(watcher.mayAnswer).toBe(false);
});

test("a revoked key loses its connection, and what it asked is withdrawn", async () => {
  const { key, secret } = await keys.create({ ownerId: "alice", role: "user", name: "" });
  using requester = await open({ id: key.id, secret });
  requester.send({ type: "hello", role: "requester" });
  requester.send({ type: "request", ref: "1", request: { ...request(), expiresAt: "2100-01-01T00:00:00.000Z" } });
  await eventually(() => broker.pending({ ownerId: "alice" }).length === 1);
  await keys.revoke(key.id);
  expect(await requester.closed()).toBe(1006);
  await eventually(() => broker.pending({ ownerId: "alice" }).length === 0);
});

test("without an upgrade the answer is a hint, over both versions of HTTP", async () => {
  const response = await fetch(`${endpoint}/v1/confirmations`, { headers: { "x-api-key": alice.secret } });
  expect([response.status, response.headers.get("upgrade")]).toEqual([426, "websocket"]);
  expect(await response.text()).toContain("agentfense.confirmations.v1");

  const session = connectHttp2(endpoint);
  try {
    const stream = session.request({ ":path": "/v1/confirmations", "x-api-key": alice.secret });
    const [headers] = await once(stream, "response");
    expect(headers[":status"]).toBe(426);
    stream.close();
  } finally {
    session.destroy();
  }
});

test("the server's end is a goodbye", async () => {
  using peer = await open(alice);
  peer.send({ type: "hello", role: "reviewer" });
  await peer.next("welcome");
  await server.shutDown();
  expect(await peer.closed()).toBe(1001);
});
