import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { gzipSync } from "node:zlib";
import { DownloadArchiveRequestSchema, DownloadFileRequestSchema } from "@agentfense/protocol/codebase";
import { ExecRequestSchema } from "@agentfense/protocol/sandbox";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeCodebase, makeSandbox } from "../../../support/belongings.ts";
import { aWhile, eventually } from "../../../support/eventually.ts";
import { CONTRACT } from "../../../support/every-method.ts";
import type { GrpcClient, Message, ServiceName } from "../../../support/grpc-client.ts";
import { GuardedServer } from "../../../support/owners.ts";
import { grpcFrame, http2Post, rawExchange, statusOf } from "../../../support/raw-http.ts";

const CONCURRENT = 24;
const STREAMS = 16;

let guarded: GuardedServer;
let client: GrpcClient;
let codebase_id: string;
let sandbox_id: string;
let auth: Record<string, string>;

beforeAll(async () => {
  guarded = await GuardedServer.start({
    settings: { limits: { concurrent_calls: CONCURRENT, streams_per_connection: STREAMS, max_message_size: "1MiB" } },
  });
  client = guarded.alice.grpc;
  auth = { authorization: `Bearer ${guarded.alice.key}` };
  codebase_id = await makeCodebase(client, { "a.txt": "a" });
  sandbox_id = await makeSandbox(client, codebase_id);
});
afterAll(() => guarded?.[Symbol.asyncDispose]());

/** It is the same process, it answers, and nothing of what came was a surprise to it. */
async function expectUnharmed(): Promise<void> {
  expect(guarded.server.running).toBe(true);
  expect((await fetch(`${guarded.server.http}/readyz`)).status).toBe(200);
  expect(guarded.server.log.filter(({ level }) => level === "error" || level === "fatal")).toEqual([]);
}

describe("API-16 what is wrong in a message", () => {
  const at = (): Message => ({ codebase_id, file_path: "b.txt" });
  const data = Buffer.from("x");
  const entry = { path: "b.txt", size: "1" };
  const INT64 = "9223372036854775807";

  const WRONG: Readonly<Record<string, () => [ServiceName, string, Message[]]>> = {
    "data before metadata": () => ["CodebaseService", "UploadFiles", [{ data }, { metadata: at() }]],
    "metadata twice": () => ["CodebaseService", "UploadFiles", [{ metadata: at() }, { data }, { metadata: at() }]],
    "no message at all": () => ["CodebaseService", "UploadFiles", []],
    "only empty messages": () => ["CodebaseService", "UploadFiles", [{}, {}, {}]],
    "a link with data": () => [
      "CodebaseService",
      "UploadFiles",
      [{ metadata: { ...at(), symlink_target: "x" } }, { data }],
    ],
    "a mode with a file type": () => [
      "CodebaseService",
      "UploadFiles",
      [{ metadata: { ...at(), mode: 0o100644 } }, { data }],
    ],
    "items before begin": () => ["CodebaseService", "BatchUpload", [{ items: [{ entry, data }] }]],
    "begin twice": () => [
      "CodebaseService",
      "BatchUpload",
      [{ begin: { codebase_id }, items: [{ entry, data }] }, { begin: { codebase_id } }],
    ],
    "content of no entry": () => ["CodebaseService", "BatchUpload", [{ begin: { codebase_id }, items: [{ data }] }]],
    "an entry of an unknown kind": () => [
      "CodebaseService",
      "BatchUpload",
      [{ begin: { codebase_id }, items: [{ entry: { ...entry, kind: 77 }, data }] }],
    ],
    "a negative size": () => [
      "CodebaseService",
      "BatchUpload",
      [{ begin: { codebase_id }, items: [{ entry: { ...entry, size: "-1" }, data }] }],
    ],
    "an archive without metadata": () => ["CodebaseService", "UploadArchive", [{ data }]],
    "a negative version": () => [
      "CodebaseService",
      "DownloadFile",
      [{ codebase_id, file_path: "a.txt", version: "-1" }],
    ],
    "an absurd version": () => ["CodebaseService", "GetVersion", [{ codebase_id, version: INT64 }]],
    "a version to go back to that cannot be": () => ["CodebaseService", "Rollback", [{ codebase_id, version: "-5" }]],
    "a page token of one's own": () => ["CodebaseService", "ListCodebases", [{ page_token: "bm9wZQ" }]],
    "a page token of wrong types": () => [
      "SandboxService",
      "ListSandboxes",
      [{ page_token: Buffer.from('[{"a":1},[]]').toString("base64url") }],
    ],
    "an unknown runtime": () => ["SandboxService", "CreateSandbox", [{ codebase_id, runtime: 99 }]],
    "an unknown network": () => ["SandboxService", "CreateSandbox", [{ codebase_id, network: -1 }]],
    "an unknown sync mode": () => ["SandboxService", "CreateSandbox", [{ codebase_id, sync: 1000 }]],
    "a negative limit": () => ["SandboxService", "CreateSandbox", [{ codebase_id, resources: { memory_bytes: "-1" } }]],
    "an absurd limit": () => ["SandboxService", "CreateSandbox", [{ codebase_id, resources: { pids_limit: INT64 } }]],
    "a negative expiry": () => ["SandboxService", "CreateSandbox", [{ codebase_id, expires_in: { seconds: "-1" } }]],
    "an expiry beyond all time": () => [
      "SandboxService",
      "CreateSandbox",
      [{ codebase_id, expires_in: { seconds: INT64 } }],
    ],
    "a pinned version that syncs": () => [
      "SandboxService",
      "CreateSandbox",
      [{ codebase_id, codebase_version: "1", sync: "SYNC_MODE_ON_EXEC" }],
    ],
    "an unknown status": () => ["SandboxService", "ListSandboxes", [{ status: 42 }]],
    "a file that is written before it is named": () => [
      "SandboxService",
      "WriteFile",
      [{ data }, { metadata: { sandbox_id, path: "b" } }],
    ],
    "a file that is named twice": () => [
      "SandboxService",
      "WriteFile",
      [{ metadata: { sandbox_id, path: "b" } }, { metadata: { sandbox_id, path: "c" } }],
    ],
    "input for a command that was not started": () => ["SandboxService", "ExecInteractive", [{ stdin: data }]],
    "a terminal that is typed into before it is open": () => ["SandboxService", "OpenTerminal", [{ data }]],
    "a terminal of absurd size": () => [
      "SandboxService",
      "OpenTerminal",
      [{ open: { sandbox_id, size: { columns: 70_000, rows: 1 } } }],
    ],
    "a terminal that is opened twice": () => [
      "SandboxService",
      "OpenTerminal",
      [{ open: { sandbox_id, argv: ["cat"] } }, { open: { sandbox_id } }],
    ],
    "an idle timeout below zero": () => [
      "SandboxService",
      "CreateSession",
      [{ sandbox_id, idle_timeout: { seconds: "-1" } }],
    ],
    "a time beyond all calendars": () => ["EventService", "ListEvents", [{ after: { seconds: INT64 } }]],
    "a negative sequence": () => ["EventService", "WatchEvents", [{ after_sequence: "-1" }]],
  };

  test("API-16 messages out of order and numbers that cannot be are INVALID_ARGUMENT", async () => {
    for (const [what, make] of Object.entries(WRONG)) {
      const [service, method, requests] = make();
      const { code, message } = await client.outcome(service, method, requests);
      expect([what, code, message]).toEqual([what, 3, expect.stringMatching(/./)]);
    }
    const key = { owner_id: "x", role: 77 };
    expect(await guarded.admin.grpc.failure("SystemService", "CreateKey", key)).toMatchObject({ code: 3 });
    const { files } = await client.call("CodebaseService", "ListFiles", { codebase_id });
    // A file of the view is opened before its second name comes, as it would be inside.
    expect((files as Message[]).map(({ name }) => name).filter((name) => name !== "b")).toEqual(["a.txt"]);
    await expectUnharmed();
  });

  test("API-16 a negative priority is a low one, not a number gone round", async () => {
    const permissions = [
      { pattern: "/a.txt", permission: "PERMISSION_WRITE", priority: -2_147_483_648 },
      { pattern: "/*.txt", permission: "PERMISSION_READ", priority: -1 },
    ];
    const made = await client.call("SandboxService", "CreateSandbox", { codebase_id, permissions });
    expect(made.permissions).toMatchObject(permissions);
    const explained = await client.call("SandboxService", "ExplainPath", { sandbox_id: made.id, path: "/a.txt" });
    expect(explained).toMatchObject({ permission: "PERMISSION_READ" });
  });

  test("API-16 JSON of wrong types, and what is no JSON, is 400", async () => {
    const deep = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
    const bodies: string[] = [
      '{"name": 5}',
      '{"name": ["x"]}',
      '{"name": {"$ne": ""}}',
      '{"name": "a" "b"}',
      "{",
      "[]",
      '"text"',
      "5",
      "NaN",
      '{"name": "\\ud800"}',
      '{"name": "x", "name": 5}',
      deep,
      "\u0000",
    ];
    for (const body of bodies) {
      const response = await fetch(`${guarded.server.http}/v1/codebases`, {
        method: "POST",
        headers: { "content-type": "application/json", ...auth },
        body,
      });
      expect([body.slice(0, 30), response.status]).toEqual([body.slice(0, 30), 400]);
    }
    for (const resources of [
      { memoryBytes: "x" },
      { memoryBytes: 1.5 },
      { memoryBytes: 1e30 },
      { memoryBytes: true },
      "none",
      [],
    ]) {
      const answer = await guarded.alice.rest.post("/v1/sandboxes", { codebaseId: codebase_id, resources });
      expect([resources, answer.status]).toEqual([resources, 400]);
    }
    for (const query of ["page_size=x", "page_size=99999999999", "page_size=1.5", "page_size=NaN"]) {
      expect([query, (await guarded.alice.rest.get(`/v1/codebases?${query}`)).status]).toEqual([query, 400]);
    }
    const latin1 = await fetch(`${guarded.server.http}/v1/codebases`, {
      method: "POST",
      headers: { "content-type": "application/json", ...auth },
      body: Buffer.from('{"name":"\xff\xfe"}', "latin1"),
    });
    expect(latin1.status).toBe(400);
    await expectUnharmed();
  });

  test("API-16 unknown fields are ignored, and bytes that are no message harm nobody", async () => {
    const unknown = Buffer.concat([
      Buffer.from([0x0a, 0x01, 0x78]), // name: "x"
      Buffer.from([0xf8, 0xff, 0xff, 0xff, 0x0f, 0x01]), // field 536870911, varint
      Buffer.from([0xba, 0x3e, 0x03, 0x61, 0x62, 0x63]), // field 999, bytes
    ]);
    const create = "/sandbox.v1.CodebaseService/CreateCodebase";
    expect((await http2Post(guarded.server.grpc, create, grpcFrame(unknown), auth)).headers["grpc-status"]).toBe("0");

    const broken: Record<string, Buffer> = {
      "a string as a number": grpcFrame(Buffer.from([0x08, 0x01])),
      "a length beyond the end": grpcFrame(Buffer.from([0x0a, 0x7f, 0x61])),
      "a huge length": grpcFrame(Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x07])),
      "a varint without an end": grpcFrame(Buffer.alloc(32, 0xff)),
      "a group without an end": grpcFrame(Buffer.alloc(4096, 0x0b)),
      "field zero": grpcFrame(Buffer.from([0x00, 0x01])),
      "a wire type that is none": grpcFrame(Buffer.from([0x0f])),
      "a frame longer than the body": grpcFrame(Buffer.from([0x0a]), { length: 1000 }),
      "half a frame": Buffer.from([0, 0, 0]),
      "two messages for one": Buffer.concat([grpcFrame(unknown), grpcFrame(unknown)]),
      "no message": Buffer.alloc(0),
      "compressed by nothing": grpcFrame(unknown, { compressed: true }),
    };
    for (const [what, body] of Object.entries(broken)) {
      const { headers } = await http2Post(guarded.server.grpc, create, body, auth);
      expect([what, headers["grpc-status"]]).toEqual([what, expect.stringMatching(/^(?:3|12|13)$/)]);
    }
    const squeezed = grpcFrame(Buffer.from("not gzip"), { compressed: true });
    const answer = await http2Post(guarded.server.grpc, create, squeezed, { ...auth, "grpc-encoding": "gzip" });
    expect(answer.headers["grpc-status"]).toMatch(/^(?:3|13)$/);
    const odd = await http2Post(guarded.server.grpc, create, squeezed, { ...auth, "grpc-encoding": "brainfuck" });
    expect(odd.headers["grpc-status"]).toBe("12");
    await expectUnharmed();
  });

  test("API-16 random bytes to every method end in an orderly answer", async () => {
    // Of the reader: whatever a message happens to mean, it changes nothing.
    const headers = { authorization: `Bearer ${guarded.reader.key}` };
    for (const { path, name, changes } of CONTRACT.filter((method) => !method.changes)) {
      for (let round = 0; round < 4; round++) {
        const seed = createHash("sha512").update(`${name} ${round}`).digest();
        const body = grpcFrame(Buffer.concat([seed, seed]).subarray(0, 3 + ((seed[0] ?? 0) % 120)));
        const timeout = { "grpc-timeout": "300m" };
        const { headers: answer } = await http2Post(guarded.server.grpc, path, body, { ...headers, ...timeout });
        expect([name, changes, answer["grpc-status"]]).toEqual([
          name,
          false,
          expect.stringMatching(/^(?:0|3|4|5|9|13)$/),
        ]);
      }
    }
    await expectUnharmed();
  });
});

function residentMiB(): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${guarded.server.pid}/status`, "utf8"))?.[1]) / 1024;
}

describe("API-33 what is too much", () => {
  test("API-33 a message beyond the limit is refused, and one that unpacks to more", async () => {
    const large = await client.outcome("SandboxService", "Exec", [
      { sandbox_id, command: "true", stdin_bytes: Buffer.alloc(1024 * 1024 + 1) },
    ]);
    expect(large.code).toBe(8);
    const before = residentMiB();
    const bomb = gzipSync(Buffer.alloc(256 * 1024 * 1024), { level: 9 });
    expect(bomb.length).toBeLessThan(1024 * 1024);
    const headers = { ...auth, "grpc-encoding": "gzip" };
    const paths = ["/sandbox.v1.CodebaseService/CreateCodebase", "/sandbox.v1.CodebaseService/UploadFiles"];
    for (const path of paths) {
      const answer = await http2Post(guarded.server.grpc, path, grpcFrame(bomb, { compressed: true }), headers);
      expect(answer.headers["grpc-status"]).toBe("8");
    }
    const announced = await http2Post(
      guarded.server.grpc,
      paths[0]!,
      grpcFrame(Buffer.alloc(10), { length: 0xffff_ffff }),
      auth,
    );
    expect(announced.headers["grpc-status"]).toBe("8");
    expect(residentMiB() - before).toBeLessThan(128);
    const json = await guarded.alice.rest.post("/v1/codebases", { name: "x".repeat(5 * 1024 * 1024) });
    expect(json.status).toBeGreaterThanOrEqual(400);
    expect(json.status).toBeLessThan(500);
    await expectUnharmed();
  });

  test("API-33 headers are bounded", async () => {
    const line = `GET /v1/server HTTP/1.1\r\nHost: localhost\r\n`;
    for (const header of [
      `X-Large: ${"x".repeat(200_000)}\r\n`,
      Array.from({ length: 5000 }, (_, index) => `X-${index}: ${"y".repeat(20)}\r\n`).join(""),
    ]) {
      expect([400, 431]).toContain(statusOf(await rawExchange(guarded.server.http, `${line}${header}\r\n`)));
    }
    const huge = await http2Post(
      guarded.server.grpc,
      "/sandbox.v1.SystemService/GetServerInfo",
      grpcFrame(Buffer.alloc(0)),
      {
        ...auth,
        "x-large": "x".repeat(300_000),
      },
    );
    expect(huge.headers["grpc-status"]).not.toBe("0");
    await expectUnharmed();
  });

  test("API-33 streams are bounded for each connection and each owner, and one owner's are not in another's way", async () => {
    const session = connectHttp2(`http://${guarded.server.grpc}`);
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    expect(session.remoteSettings.maxConcurrentStreams).toBe(STREAMS);
    session.destroy();

    const { mallory, alice } = guarded;
    const sessions = [1, 2, 3].map(() => connectHttp2(`http://${guarded.server.grpc}`));
    const statuses: string[] = [];
    const watch = (index: number) => {
      const stream = sessions[index % sessions.length]!.request({
        ":method": "POST",
        ":path": "/sandbox.v1.EventService/WatchEvents",
        "content-type": "application/grpc+proto",
        authorization: `Bearer ${mallory.key}`,
      });
      const note = (headers: object): void => {
        if ("grpc-status" in headers) statuses.push(String(headers["grpc-status"]));
      };
      stream
        .on("response", note)
        .on("trailers", note)
        .on("error", () => {})
        .resume();
      stream.end(grpcFrame(Buffer.alloc(0)));
    };
    for (let index = 0; index < CONCURRENT + 10; index++) watch(index);
    await eventually(() => expect(statuses).toEqual(Array.from({ length: 10 }, () => "8")));
    expect(await mallory.grpc.failure("SystemService", "GetServerInfo")).toMatchObject({ code: 8 });
    expect(await alice.grpc.call("SystemService", "GetServerInfo")).toMatchObject({ owner_id: "alice" });
    for (const each of sessions) each.destroy();
    await eventually(async () =>
      expect((await mallory.grpc.outcome("SystemService", "GetServerInfo", [{}])).code).toBe(0),
    );
  });

  test("API-33 a reader that does not read makes the sender wait, not the server grow", async () => {
    await client.upload(codebase_id, "large.bin", Buffer.alloc(48 * 1024 * 1024, 1));
    const before = residentMiB();
    const command = "head -c 200000000 /dev/zero; echo done > finished";
    const requests: readonly (readonly [path: string, message: Uint8Array])[] = [
      [
        "SandboxService/ExecStream",
        toBinary(ExecRequestSchema, create(ExecRequestSchema, { sandboxId: sandbox_id, command })),
      ],
      [
        "CodebaseService/DownloadFile",
        toBinary(
          DownloadFileRequestSchema,
          create(DownloadFileRequestSchema, { codebaseId: codebase_id, filePath: "large.bin" }),
        ),
      ],
      [
        "CodebaseService/DownloadArchive",
        toBinary(DownloadArchiveRequestSchema, create(DownloadArchiveRequestSchema, { codebaseId: codebase_id })),
      ],
    ];
    // Clients of gRPC read ahead for their users; this one leaves everything in the network.
    const sessions = requests.flatMap(([path, message]) =>
      [1, 2].map(() => {
        const session = connectHttp2(`http://${guarded.server.grpc}`);
        const headers = { "content-type": "application/grpc", te: "trailers", ...auth };
        const stream = session.request({ ":method": "POST", ":path": `/sandbox.v1.${path}`, ...headers });
        stream.on("error", () => {});
        stream.end(grpcFrame(message));
        return session;
      }),
    );
    // Long enough for everything to have arrived, if somebody were to take it: some 590 MB.
    await aWhile(5_000);
    expect(residentMiB() - before).toBeLessThan(96);
    const { exit_code } = await client.call("SandboxService", "Exec", { sandbox_id, command: "test -e finished" });
    expect(exit_code).toBe(1);
    for (const session of sessions) session.destroy();
    await expectUnharmed();
  });
});
