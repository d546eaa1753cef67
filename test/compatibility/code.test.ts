import { beforeAll, describe, expect, test } from "vitest";
import { serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import { makeBelongings } from "../support/belongings.ts";
import { eventually } from "../support/eventually.ts";
import { GuardedServer } from "../support/owners.ts";
import type { Message } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();
let codebase: string;
let sandbox: string;
beforeAll(async () => {
  codebase = await api.codebase({ "a.txt": "alpha" });
  sandbox = await api.sandbox(codebase);
});

const run = (request: Message, id = sandbox): Promise<Message[]> =>
  Array.fromAsync(
    api.grpc.stream("SandboxService", "RunCode", { sandbox_id: id, ...request }, { deadlineMs: 60_000 }),
  ) as Promise<Message[]>;
const main = (outputs: readonly Message[]): unknown =>
  outputs.map(({ result }) => result as Message | null).find((result) => result?.is_main)?.data;

describe("code", () => {
  test("over gRPC: a context keeps names; it is made, listed, interrupted, restarted and deleted", async () => {
    const made = await api.call("SandboxService.CreateCodeContext", { sandbox_id: sandbox, workdir: "/tmp" });
    expect(made).toMatchObject({
      ...{ sandbox_id: sandbox, language: "CODE_LANGUAGE_PYTHON", workdir: "/tmp" },
      ...{ is_default: false, execution_count: 0, busy: false },
    });
    const context = { sandbox_id: sandbox, context_id: made.id };
    const first = await run({ context_id: made.id, code: "x = 20\nprint('ä')\nx + 1" });
    expect(first[0]).toMatchObject({ started: { context_id: made.id, execution_count: 1, restarted: "" } });
    expect(first[1]).toMatchObject({ stdout: Buffer.from("ä\n") });
    expect(main(first)).toEqual({ "text/plain": "21" });
    expect(first.at(-1)).toMatchObject({ end: { exit_code: 0, timed_out: false, context_lost: false } });
    const [second] = await Promise.all([
      run({ context_id: made.id, code: "import time\ntime.sleep(600)" }),
      eventually(async () => {
        const { contexts } = await api.call("SandboxService.ListCodeContexts", { sandbox_id: sandbox });
        expect(contexts).toContainEqual(expect.objectContaining({ id: made.id, busy: true, execution_count: 2 }));
        await api.call("SandboxService.InterruptCodeContext", context);
      }),
    ]);
    expect(second.at(-2)).toMatchObject({ error: { name: "KeyboardInterrupt" } });
    await api.call("SandboxService.RestartCodeContext", context);
    expect((await run({ context_id: made.id, code: "x" })).at(-2)).toMatchObject({ error: { name: "NameError" } });
    await api.call("SandboxService.DeleteCodeContext", context);
    await api.refused({
      method: "SandboxService.RestartCodeContext",
      request: context,
      rest: `POST /v1/sandboxes/${sandbox}/contexts/${made.id}/restart`,
      status: "NOT_FOUND",
      message: /^there is no such code context/,
    });
  });

  test("over REST: events as it runs, and the same calls on contexts", async () => {
    const base = `/v1/sandboxes/${sandbox}`;
    const { json } = await api.rest.post(`${base}/contexts`, { language: "CODE_LANGUAGE_BASH" });
    expect(json).toMatchObject({ language: "CODE_LANGUAGE_BASH", busy: false });
    expect((await api.rest.get(`${base}/contexts`)).json.contexts).toContainEqual(json);
    const body = { contextId: json.id, code: "cd /; echo $A; false", env: { A: "b" } };
    const events = await Array.fromAsync(api.rest.events("POST", `${base}/code`, body));
    expect(events.map(({ data }) => data).slice(0, 3)).toMatchObject([
      { started: { contextId: json.id, executionCount: 1 } },
      { stdout: Buffer.from("b\n").toString("base64") },
      { end: { exitCode: 1 } },
    ]);
    expect((await api.rest.post(`${base}/contexts/${json.id}/interrupt`, {})).json).toEqual({});
    expect((await api.rest.delete(`${base}/contexts/${json.id}`)).json).toEqual({});
  });

  test("what it wrote is synced when it ends, and the audit log has the code", async () => {
    const own = await api.sandbox(codebase, { sync: "SYNC_MODE_ON_EXEC" });
    const outputs = await run({ code: "_ = open('made.txt', 'w').write('by code')" }, own);
    expect(Number((outputs.at(-1)!.end as Message).synced_version)).toBeGreaterThan(0);
    const { events } = await api.call("EventService.ListEvents", { sandbox_id: own, types: ["command_executed"] });
    expect(JSON.stringify(events)).toContain("made.txt");
  });

  test("sees what the rules show, and nothing else", async () => {
    const permissions = [
      { pattern: "**", permission: "PERMISSION_READ" },
      { pattern: "secret.txt", permission: "PERMISSION_NONE" },
    ];
    const own = await api.sandbox(await api.codebase({ "a.txt": "alpha", "secret.txt": "hidden" }), { permissions });
    const python = await run({ code: "import os\n(os.listdir('.'), os.path.exists('secret.txt'))" }, own);
    expect(main(python)).toEqual({ "text/plain": "(['a.txt'], False)" });
    const shell = await run({ code: "cat secret.txt", language: "CODE_LANGUAGE_BASH" }, own);
    expect(Buffer.from(shell[1]!.stderr as Uint8Array).toString()).toContain("No such file");
    const written = await run({ code: "open('a.txt', 'w')" }, own);
    expect(written.at(-2)).toMatchObject({ error: { name: "PermissionError" } });
  });

  test("a sandbox that is stopped loses its contexts", async () => {
    const own = await api.sandbox(codebase);
    await run({ code: "x = 1" }, own);
    await api.call("SandboxService.StopSandbox", { sandbox_id: own });
    await api.refused({
      method: "SandboxService.ListCodeContexts",
      request: { sandbox_id: own },
      rest: `GET /v1/sandboxes/${own}/contexts`,
      status: "FAILED_PRECONDITION",
      message: "sandbox is not running",
    });
    await api.call("SandboxService.StartSandbox", { sandbox_id: own });
    expect(main(await run({ code: "'x' in globals()" }, own))).toEqual({ "text/plain": "False" });
  });
});

describe("is refused", () => {
  test("a context of a language for code of another, and a sandbox that nobody knows", async () => {
    const { id } = await api.call("SandboxService.CreateCodeContext", {
      sandbox_id: sandbox,
      language: "CODE_LANGUAGE_BASH",
    });
    await api.refused({
      method: "SandboxService.RunCode",
      request: { sandbox_id: sandbox, context_id: id, language: "CODE_LANGUAGE_PYTHON", code: "1" },
      status: "INVALID_ARGUMENT",
      message: /is one of bash, not python$/,
    });
    await api.refused({
      method: "SandboxService.RunCode",
      request: { sandbox_id: UNKNOWN.sandbox, code: "1" },
      status: "NOT_FOUND",
      message: "sandbox not found",
    });
  });

  test("everything about the code of another owner's sandbox, and a context by the id of another sandbox", async () => {
    await using guarded = await GuardedServer.start();
    const { alice, mallory } = guarded;
    const { sandbox_id } = await makeBelongings(alice.grpc);
    const { id: context_id } = await alice.grpc.call("SandboxService", "CreateCodeContext", { sandbox_id });
    for (const method of COVERAGE.code) {
      const name = method.split(".")[1]!;
      const outcome = await mallory.grpc.outcome("SandboxService", name, [{ sandbox_id, context_id, code: "1" }]);
      const told = { name, code: outcome.code, message: outcome.message };
      expect(told).toEqual({ name, code: 5, message: "sandbox not found" });
    }
    const own = await makeBelongings(mallory.grpc);
    const stolen = { sandbox_id: own.sandbox_id, context_id, code: "1" };
    expect(await mallory.grpc.outcome("SandboxService", "RunCode", [stolen])).toMatchObject({
      code: 5,
      message: "there is no such code context",
    });
    const { contexts } = await alice.grpc.call("SandboxService", "ListCodeContexts", { sandbox_id });
    expect(contexts).toMatchObject([{ id: context_id, execution_count: 0 }]);
  });
});

testsCover(api, COVERAGE.code);
