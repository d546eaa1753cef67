import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Belongings, exec, makeBelongings, makeCodebase, makeSandbox } from "../../../support/belongings.ts";
import { errorDetails } from "../../../support/error-details.ts";
import { CONTRACT, callByGrpc, requestsOf, restRequestOf } from "../../../support/every-method.ts";
import { failureOf, GrpcClient, type Message } from "../../../support/grpc-client.ts";
import { GuardedServer } from "../../../support/owners.ts";
import { grpcFrame, http2Post, rawExchange, rawRequest } from "../../../support/raw-http.ts";
import { instanceOf, STATE_DIRECTORY } from "../../../support/sandbox-traces.ts";
import { tar } from "../../../support/tar.ts";

let guarded: GuardedServer;
let alices: Belongings;
let mallorys: Belongings;
/** Everything that was said about a failure, with what had been asked. */
const said: { readonly asked: string; readonly text: string }[] = [];

beforeAll(async () => {
  guarded = await GuardedServer.start();
  alices = await makeBelongings(guarded.alice.grpc);
  mallorys = await makeBelongings(guarded.mallory.grpc);
});
afterAll(() => guarded?.[Symbol.asyncDispose]());

const REPOSITORY = join(import.meta.dirname, "../../../..");

/** Nothing that was said about a failure tells of the host, of the program, or of anybody else. */
function expectDiscreet(): void {
  expect(said.length).toBeGreaterThan(0);
  const secrets = [
    guarded.server.directory,
    STATE_DIRECTORY,
    REPOSITORY,
    ...Object.values(alices),
    guarded.alice.keyId,
  ];
  for (const { asked, text } of said) {
    for (const secret of secrets) {
      if (!asked.includes(secret))
        expect([asked.slice(0, 200), text]).toEqual([asked.slice(0, 200), expect.not.stringContaining(secret)]);
    }
    expect([asked.slice(0, 200), text]).toEqual([
      asked.slice(0, 200),
      expect.not.stringMatching(
        /\bat \S+ \([^)]*:\d+:\d+\)|\bat (?:async )?(?:file:|\/)|node:internal|\.ts:\d|\.js:\d|SQLITE|Error:|undefined|\[object/,
      ),
    ]);
    // Paths are those of the request, of the workspace, or of the API itself.
    const paths = text.match(/(?<![\w.:/<>])\/(?:[\w.@-]+\/?)+/g) ?? [];
    const foreign = paths.filter(
      (path) => !asked.includes(path.replace(/\/$/, "")) && !/^\/(?:workspace|v1)\b/.test(path),
    );
    expect([asked.slice(0, 200), text, foreign]).toEqual([asked.slice(0, 200), text, []]);
  }
}

async function ask(
  client: GrpcClient,
  service: (typeof CONTRACT)[number]["service"],
  method: string,
  requests: readonly Message[],
): Promise<number> {
  const { code, message, trailers } = await client.outcome(service, method, requests);
  const asked = requests.map((request) => `${JSON.stringify(request)} ${String(request.data ?? "")}`).join(" ");
  if (code !== 0) said.push({ asked, text: `${message} ${detailsOf(trailers)}` });
  return code;
}

/** The binary details as text; metadata of a failed call beside them. */
function detailsOf(trailers: Readonly<Record<string, string>>): string {
  const { "grpc-status-details-bin": details = "", ...others } = trailers;
  return `${details} ${JSON.stringify(others)}`;
}

async function askRest(verb: string, target: string, body?: string, key = guarded.mallory.key): Promise<void> {
  const headers = {
    Host: "localhost",
    "X-Api-Key": key,
    "Content-Type": "application/json",
    "Content-Length": String(Buffer.byteLength(body ?? "")),
  };
  const answer = await rawExchange(guarded.server.http, rawRequest(`${verb} ${target}`, headers, body));
  if (!/^HTTP\/1\.1 2/.test(answer)) {
    // Names of content types and dates have slashes of their own.
    said.push({
      asked: `${verb} ${target} ${body ?? ""}`,
      text: answer
        .replace(/^(?:HTTP|content-type|date|grpc-metadata|keep-alive)[^\n]*\n/gim, "")
        .replaceAll("type.googleapis.com/google.rpc", ""),
    });
  }
}

test("API-42 what every method says about ids, fields and files that are not there names nothing of the host", async () => {
  const { mallory } = guarded;
  const ids: Message[] = [
    { ...alices, key_id: guarded.alice.keyId },
    { codebase_id: `cb_${"0".repeat(32)}`, sandbox_id: `sb_${"0".repeat(32)}`, session_id: `sess_${"0".repeat(32)}` },
    { codebase_id: "x", sandbox_id: "../x", session_id: "\0" },
    {},
    {
      ...mallorys,
      path: "nothing",
      file_path: "nothing/there",
      from_path: "nothing",
      to_path: "a.txt/x",
      version: "99",
      preset: "nothing",
      command: "\0",
      shell: "nothing",
    },
    {
      ...mallorys,
      path: "../x",
      file_path: "../x",
      from_path: "a/../b",
      to_path: "/",
      version: "-1",
      owner_id: "alice",
    },
  ];
  for (const method of CONTRACT.filter(({ name }) => !["WatchEvents", "WatchFiles"].includes(name))) {
    for (const given of ids) {
      if (
        ["OpenTerminal", "DestroySandbox", "StopSandbox", "DeleteCodebase", "DestroySession"].includes(method.name) &&
        given.sandbox_id === mallorys.sandbox_id
      )
        continue;
      const { code, message, trailers } = await callByGrpc(mallory.grpc, method, given);
      if (code === 0) continue;
      said.push({ asked: JSON.stringify(requestsOf(method, given)), text: `${message} ${detailsOf(trailers)}` });
      const request = restRequestOf(method, given);
      if (request !== undefined)
        await askRest(
          request.verb,
          request.target,
          typeof request.body === "object" ? JSON.stringify(request.body) : undefined,
        );
    }
  }
  for (const target of [
    "/",
    "/v2",
    "/v1/../etc",
    "/v1/codebases/%",
    "/v1/%00",
    "/v1/sandboxes/x/exec",
    "/etc/passwd",
    "/sandbox.v1.SandboxService/Nothing",
  ]) {
    for (const verb of ["GET", "POST", "PATCH", "TRACE", "CONNECT"])
      await askRest(verb, target, verb === "POST" ? "{broken" : undefined);
  }
  for (const body of [Buffer.alloc(3), grpcFrame(Buffer.alloc(64, 0xff)), grpcFrame(Buffer.from([0x0a, 0xff]))]) {
    const answer = await http2Post(guarded.server.grpc, "/sandbox.v1.SandboxService/Exec", body, {
      authorization: `Bearer ${mallory.key}`,
    });
    said.push({ asked: "broken frames", text: decodeURIComponent(answer.headers["grpc-message"] ?? "") });
  }
  for (const archive of [
    tar([{ name: "../x" }]),
    tar([{ name: "x", type: "3" }]),
    Buffer.alloc(5000, 1),
    tar([{ name: "/etc/x" }]),
  ]) {
    await ask(mallory.grpc, "CodebaseService", "UploadArchive", [
      { metadata: { codebase_id: mallorys.codebase_id } },
      { data: archive },
    ]);
  }
  expect(said.length).toBeGreaterThan(300);
  expectDiscreet();
});

test("API-42 a broken disk under the server is an internal error with a reference, and no more", async () => {
  const { mallory, server } = guarded;
  said.length = 0;
  const codebase_id = await makeCodebase(mallory.grpc, { "a.txt": "a", "d/b.txt": "b" });
  const stopped = await makeSandbox(mallory.grpc, codebase_id);
  await exec(mallory.grpc, stopped, "echo x > new.txt");
  await mallory.grpc.call("SandboxService", "StopSandbox", { sandbox_id: stopped });
  const { id: pending } = await mallory.grpc.call("SandboxService", "CreateSandbox", { codebase_id });
  const home = join(server.directory, "codebases", codebase_id);

  const everything = async (): Promise<void> => {
    for (const [method, requests] of [
      ["DownloadFile", [{ codebase_id, file_path: "a.txt" }]],
      ["DownloadFile", [{ codebase_id, file_path: "d/b.txt", version: "1" }]],
      ["DownloadArchive", [{ codebase_id }]],
      ["UploadFiles", [{ metadata: { codebase_id, file_path: "c.txt" } }, { data: Buffer.from("x") }]],
      ["UploadFiles", [{ metadata: { codebase_id, file_path: "l", symlink_target: "x" } }]],
      [
        "BatchUpload",
        [{ begin: { codebase_id }, items: [{ entry: { path: "e.txt", size: "1" }, data: Buffer.from("x") }] }],
      ],
      ["UploadArchive", [{ metadata: { codebase_id } }, { data: tar([{ name: "f.txt", content: "f" }]) }]],
      ["DeleteFile", [{ codebase_id, file_path: "a.txt" }]],
      ["RenameFile", [{ codebase_id, from_path: "d", to_path: "e" }]],
      ["Rollback", [{ codebase_id, version: "1" }]],
    ] as [string, Message[]][]) {
      await ask(mallory.grpc, "CodebaseService", method, requests);
    }
    for (const sandbox_id of [stopped, pending]) {
      for (const method of [
        "ListChanges",
        "DiffChanges",
        "ApplyChanges",
        "DiscardChanges",
        "StartSandbox",
        "StopSandbox",
      ]) {
        await ask(mallory.grpc, "SandboxService", method, [{ sandbox_id }]);
      }
    }
    await askRest("GET", `/v1/codebases/${codebase_id}/files/a.txt`);
    await askRest("GET", `/v1/codebases/${codebase_id}/archive`);
  };

  for (const part of ["tree", "staging", "kept"]) {
    if (!existsSync(join(home, part))) mkdirSync(join(home, part));
    renameSync(join(home, part), join(home, `${part}.away`));
    await everything();
    writeFileSync(join(home, part), "a file where a directory should be");
    await everything();
    rmSync(join(home, part));
    renameSync(join(home, `${part}.away`), join(home, part));
  }
  // The change set of a sandbox is no directory any more.
  const deltas = join(server.directory, "mounts/delta");
  for (const name of readdirSync(deltas).filter((each) => each === stopped || each === pending)) {
    rmSync(join(deltas, name), { recursive: true });
    writeFileSync(join(deltas, name), "not a delta");
  }
  await everything();
  const made = (await mallory.grpc.call("SandboxService", "CreateSandbox", { codebase_id: mallorys.codebase_id })).id;
  // The server's place for mount points is gone.
  const instance = join(STATE_DIRECTORY, instanceOf(mallorys.sandbox_id)!);
  renameSync(instance, `${instance}-away`);
  await ask(mallory.grpc, "SandboxService", "StartSandbox", [{ sandbox_id: made }]);
  await ask(mallory.grpc, "SandboxService", "Exec", [{ sandbox_id: mallorys.sandbox_id, command: "pwd" }]);
  renameSync(`${instance}-away`, instance);

  expect(said.length).toBeGreaterThan(20);
  expectDiscreet();
  // What the owner finds out later is as discreet.
  const { sandboxes } = await mallory.grpc.call("SandboxService", "ListSandboxes", { page_size: 1000 });
  const { events } = await mallory.grpc.call("EventService", "ListEvents", { page_size: 1000 });
  said.push({ asked: "", text: JSON.stringify((sandboxes as Message[]).map(({ status_reason }) => status_reason)) });
  for (const { type, data } of events as Message[])
    if (/failed/.test(String(type))) said.push({ asked: "", text: JSON.stringify(data) });
  expectDiscreet();
  // The operator's log has the rest, under the same reference.
  const references = said.flatMap(({ text }) => /reference ([0-9a-f]{8})/.exec(text)?.[1] ?? []);
  for (const reference of references) expect(server.output).toContain(reference);
});

test("API-42 a broken database is an internal error, and no more", async () => {
  await using broken = await GuardedServer.start();
  const { alice, server } = broken;
  const { codebase_id, sandbox_id, session_id } = await makeBelongings(alice.grpc);
  for (const name of ["metadata.db", "metadata.db-wal"]) {
    const path = join(server.directory, name);
    if (!existsSync(path)) continue;
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(200_000, 0x5a), 0, 200_000, 0);
    closeSync(file);
  }
  const failures: string[] = [];
  for (const method of CONTRACT.filter(({ name }) => !["WatchEvents", "WatchFiles", "OpenTerminal"].includes(name))) {
    const { code, message, trailers } = await callByGrpc(
      alice.grpc,
      method,
      { codebase_id, sandbox_id, session_id },
      { deadlineMs: 5_000 },
    );
    if (code !== 0) failures.push(`${method.name}: ${message} ${detailsOf(trailers)}`);
  }
  expect(failures.length).toBeGreaterThan(5);
  for (const failure of failures) {
    expect(failure).not.toMatch(/SQLITE|sqlite|database disk image|malformed|\/tmp|metadata\.db|at .*\(|\.ts:\d|node:/);
  }
});

test("API-42 details of an error are those of the contract", async () => {
  using nobody = new GrpcClient(guarded.server.grpc);
  const error: unknown = await nobody.call("SystemService", "GetServerInfo").catch((caught: unknown) => caught);
  expect(errorDetails(error as Parameters<typeof errorDetails>[0])).toMatchObject([
    { reason: "UNAUTHENTICATED", domain: "agentfense" },
  ]);
  expect(await failureOf(Promise.reject(error))).toMatchObject({ code: 16 });
});
