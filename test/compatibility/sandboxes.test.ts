import { describe, expect, test } from "vitest";
import { type Refusal, serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import { eventually } from "../support/eventually.ts";
import type { Message, MethodName } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi({
  settings: { runtime: { networks: ["none", "filtered"], network_allow: ["*.example.com", "pypi.org"] } },
});

const create = (request: Message): Promise<Message> => api.call("SandboxService.CreateSandbox", request);
const at = (time: unknown): number => Number((time as { seconds: string }).seconds);

describe("create and get", () => {
  test("a new sandbox over gRPC is PENDING, with everything it was asked for", async () => {
    const codebase = await api.codebase();
    const created = await create({
      codebase_id: codebase,
      permissions: [
        { pattern: "/secret", permission: "PERMISSION_NONE", priority: 7 },
        { pattern: "/docs/", permission: "PERMISSION_VIEW" },
        { pattern: "**/*.ts", permission: "PERMISSION_READ" },
        { pattern: "/out", type: "PATTERN_TYPE_DIRECTORY", permission: "PERMISSION_WRITE" },
      ],
      labels: { team: "a", "with space": "ü" },
      expires_in: { seconds: 3600 },
      runtime: "RUNTIME_TYPE_BWRAP",
      resources: { memory_bytes: "536870912", pids_limit: 64 },
      sync: "SYNC_MODE_MANUAL",
      network: "NETWORK_MODE_NONE",
      revocable: true,
      env: { SECRET: "s" },
    });
    expect(created).toEqual({
      id: expect.stringMatching(/^sb_[0-9a-f]{32}$/),
      codebase_id: codebase,
      permissions: [
        { pattern: "/secret", type: "PATTERN_TYPE_FILE", permission: "PERMISSION_NONE", priority: 7 },
        { pattern: "/docs/", type: "PATTERN_TYPE_DIRECTORY", permission: "PERMISSION_VIEW", priority: 0 },
        { pattern: "**/*.ts", type: "PATTERN_TYPE_GLOB", permission: "PERMISSION_READ", priority: 0 },
        { pattern: "/out", type: "PATTERN_TYPE_DIRECTORY", permission: "PERMISSION_WRITE", priority: 0 },
      ],
      status: "SANDBOX_STATUS_PENDING",
      labels: { team: "a", "with space": "ü" },
      created_at: { seconds: expect.any(String), nanos: expect.any(Number) },
      started_at: null,
      stopped_at: null,
      expires_at: { seconds: expect.any(String), nanos: expect.any(Number) },
      runtime: "RUNTIME_TYPE_BWRAP",
      image: "",
      resources: expect.objectContaining({ memory_bytes: "536870912", cpu_quota: "0", pids_limit: "64" }),
      owner_id: "tester",
      sync: "SYNC_MODE_MANUAL",
      network: "NETWORK_MODE_NONE",
      network_rules: [],
      secrets: [],
      codebase_version: "0",
      status_reason: "",
      idle_pause: null,
      home: "",
      workspace_home: "",
      pause_at_expiry: false,
      revocable: true,
    });
    expect(at(created.expires_at) - at(created.created_at)).toBe(3600);
    expect(await api.call("SandboxService.GetSandbox", { sandbox_id: created.id })).toEqual(created);
  });

  test("a new sandbox over REST, unset fields present, short names understood", async () => {
    const codebase = await api.codebase();
    const { status, json } = await api.rest.post("/v1/sandboxes", {
      codebaseId: codebase,
      permissions: [{ pattern: "*.md", type: "glob", permission: "read" }],
      expiresIn: "90s",
      runtime: "bwrap",
      resources: { memory_bytes: 1048576000 },
    });
    expect({ status, json }).toEqual({
      status: 200,
      json: {
        id: expect.stringMatching(/^sb_[0-9a-f]{32}$/),
        codebaseId: codebase,
        permissions: [{ pattern: "*.md", type: "PATTERN_TYPE_GLOB", permission: "PERMISSION_READ", priority: 0 }],
        status: "SANDBOX_STATUS_PENDING",
        labels: {},
        createdAt: expect.stringMatching(/Z$/),
        startedAt: null,
        stoppedAt: null,
        expiresAt: expect.stringMatching(/Z$/),
        runtime: "RUNTIME_TYPE_BWRAP",
        image: "",
        resources: expect.objectContaining({ memoryBytes: "1048576000", cpuQuota: "0", cpuShares: "0" }),
        ownerId: "tester",
        sync: "SYNC_MODE_ON_EXEC",
        network: "NETWORK_MODE_NONE",
        networkRules: [],
        secrets: [],
        codebaseVersion: "0",
        statusReason: "",
        revocable: false,
        idlePause: null,
        home: "",
        workspaceHome: "",
        pauseAtExpiry: false,
      },
    });
    expect(Date.parse(json.expiresAt as string) - Date.parse(json.createdAt as string)).toBe(90_000);
    expect((await api.rest.get(`/v1/sandboxes/${json.id}`)).json).toEqual(json);
  });

  test("without an expiry it gets the server's, without a runtime the server's first", async () => {
    const created = await create({ codebase_id: await api.codebase() });
    expect(created).toMatchObject({ runtime: "RUNTIME_TYPE_BWRAP", permissions: [], resources: expect.any(Object) });
    expect(at(created.expires_at) - at(created.created_at)).toBe(24 * 3600);
  });

  test("an old client's image and glob type do no harm under bwrap", async () => {
    const created = await create({
      codebase_id: await api.codebase(),
      image: "python:3.12",
      permissions: [{ pattern: "/src/", type: "PATTERN_TYPE_GLOB", permission: "PERMISSION_READ" }],
    });
    expect(created).toMatchObject({ image: "", permissions: [{ type: "PATTERN_TYPE_DIRECTORY" }] });
  });

  test("API-19 without rules everything is hidden", async () => {
    const codebase = await api.codebase({ "a.txt": "a", "src/b": "b" });
    const id = await api.sandbox(codebase, { permissions: [] });
    expect(await api.exec(id, "ls -A; cat a.txt")).toMatchObject({ stdout: "", exit_code: 1 });
  });

  test("a preset's rules come before the permissions", async () => {
    const codebase = await api.codebase({ ".env": "SECRET", "a.txt": "a" });
    const id = await api.sandbox(codebase, {
      preset: "agent-safe",
      permissions: [{ pattern: "/notes/", permission: "PERMISSION_WRITE" }],
    });
    const { permissions } = await api.call("SandboxService.GetSandbox", { sandbox_id: id });
    expect((permissions as Message[])[0]).toMatchObject({ pattern: "**/*", permission: "PERMISSION_READ" });
    expect((permissions as Message[]).at(-1)).toMatchObject({ pattern: "/notes/", permission: "PERMISSION_WRITE" });
    expect((await api.exec(id, "ls -A; cat .env 2>&1")).stdout).toBe("a.txt\ncat: .env: No such file or directory\n");
  });
});

describe("the states", () => {
  const STATES: readonly (readonly [string, (id: string, verb: "start" | "stop") => Promise<Message>])[] = [
    [
      "gRPC",
      (id, verb) =>
        api.call(verb === "start" ? "SandboxService.StartSandbox" : "SandboxService.StopSandbox", { sandbox_id: id }),
    ],
    [
      "REST",
      async (id, verb) => {
        // Whatever body comes is drained and ignored.
        const { json } = await api.rest.post(`/v1/sandboxes/${id}/${verb}`, { sandbox_id: "ignored", x: 1 });
        return { status: json.status, started_at: json.startedAt, stopped_at: json.stoppedAt };
      },
    ],
  ];

  test.each(STATES)("start, stop and start again over %s", async (_name, go) => {
    const codebase = await api.codebase({ "a.txt": "a" });
    const { id } = (await create({ codebase_id: codebase, sync: "SYNC_MODE_NEVER", preset: "development" })) as {
      id: string;
    };
    expect(await go(id, "start")).toMatchObject({
      status: "SANDBOX_STATUS_RUNNING",
      started_at: expect.anything(),
      stopped_at: null,
    });
    expect((await api.exec(id, "echo kept > b.txt; cat a.txt")).stdout).toBe("a");
    expect(await go(id, "stop")).toMatchObject({ status: "SANDBOX_STATUS_STOPPED", stopped_at: expect.anything() });
    expect(await go(id, "start")).toMatchObject({
      status: "SANDBOX_STATUS_RUNNING",
      stopped_at: expect.anything(), // survives, as it did
    });
    expect((await api.exec(id, "cat b.txt")).stdout).toBe("kept\n");
  });

  test("pause and resume, as often as one likes, over gRPC and REST; files and changes answer meanwhile", async () => {
    const codebase = await api.codebase({ "a.txt": "a" });
    const { id } = (await create({
      codebase_id: codebase,
      sync: "SYNC_MODE_MANUAL",
      preset: "full-access",
      idle_pause: { seconds: 3600 },
    })) as { id: string };
    await api.call("SandboxService.StartSandbox", { sandbox_id: id });
    await api.exec(id, "echo kept > b.txt");
    for (let i = 0; i < 2; i++) {
      expect(await api.call("SandboxService.PauseSandbox", { sandbox_id: id })).toMatchObject({
        status: "SANDBOX_STATUS_PAUSED",
        status_reason: "",
        idle_pause: { seconds: "3600" },
      });
      const { json } = await api.rest.post(`/v1/sandboxes/${id}/pause`, {});
      expect(json).toMatchObject({ status: "SANDBOX_STATUS_PAUSED", idlePause: "3600s" });
    }
    await api.refused({
      method: "SandboxService.Exec",
      request: { sandbox_id: id, command: "true" },
      rest: `POST /v1/sandboxes/${id}/exec`,
      status: "FAILED_PRECONDITION",
      message: "sandbox is paused",
    });
    expect((await api.rest.get(`/v1/sandboxes/${id}/files/b.txt`)).text).toBe("kept\n");
    expect((await api.rest.get(`/v1/sandboxes/${id}/diff`)).text).toContain("+kept");
    expect((await api.rest.post(`/v1/sandboxes/${id}/changes/apply`, {})).json).toMatchObject({ version: "2" });
    for (let i = 0; i < 2; i++) {
      const { json } = await api.rest.post(`/v1/sandboxes/${id}/resume`, {});
      expect(json).toMatchObject({ status: "SANDBOX_STATUS_RUNNING" });
      expect(await api.call("SandboxService.ResumeSandbox", { sandbox_id: id })).toMatchObject({
        status: "SANDBOX_STATUS_RUNNING",
      });
    }
    expect((await api.exec(id, "cat b.txt")).stdout).toBe("kept\n");
  });

  test("destroy answers with an empty message in every state, and it is gone", async () => {
    const codebase = await api.codebase();
    const { id: pending } = await create({ codebase_id: codebase });
    expect(await api.call("SandboxService.DestroySandbox", { sandbox_id: pending })).toEqual({});
    const running = await api.sandbox(codebase);
    const answer = await api.rest.delete(`/v1/sandboxes/${running}`);
    expect({ status: answer.status, text: answer.text }).toEqual({ status: 200, text: "{}" });
    for (const id of [pending, running]) {
      await api.refused({
        method: "SandboxService.DestroySandbox",
        request: { sandbox_id: id },
        rest: `DELETE /v1/sandboxes/${id}`,
        status: "NOT_FOUND",
        message: "sandbox not found",
      });
    }
  });

  test("wrong states are FAILED_PRECONDITION", async () => {
    const codebase = await api.codebase();
    const { id: pending } = (await create({ codebase_id: codebase })) as { id: string };
    const running = await api.sandbox(codebase);
    const stopped = await api.sandbox(codebase);
    await api.call("SandboxService.StopSandbox", { sandbox_id: stopped });
    await api.refused({
      method: "SandboxService.StartSandbox",
      request: { sandbox_id: running },
      rest: `POST /v1/sandboxes/${running}/start`,
      status: "FAILED_PRECONDITION",
      message: "sandbox is already running",
    });
    const needRunning: readonly (readonly [MethodName, string, Message])[] = [
      ["SandboxService.StopSandbox", "POST stop", {}],
      ["SandboxService.Exec", "POST exec", { command: "true" }],
      ["SandboxService.ExecStream", "POST exec/stream", { command: "true" }],
      ["SandboxService.CreateSession", "POST sessions", {}],
      ["SandboxService.ReadFile", "GET files/a", { path: "a" }],
      ["SandboxService.ListDirectory", "GET files", {}],
      ["SandboxService.StatFile", "GET stat/a", { path: "a" }],
      ["SandboxService.MakeDirectory", "POST directories", { path: "d" }],
      ["SandboxService.RemoveFile", "DELETE files/a", { path: "a" }],
      ["SandboxService.MoveFile", "POST move", { from_path: "a", to_path: "b" }],
    ];
    for (const id of [pending, stopped]) {
      for (const [method, rest, request] of needRunning) {
        await api.refused({
          method,
          request: { sandbox_id: id, ...request },
          rest: rest.replace(" ", ` /v1/sandboxes/${id}/`),
          status: "FAILED_PRECONDITION",
          message: "sandbox is not running",
        });
      }
      await api.refused({
        method: "SandboxService.WriteFile",
        request: [{ metadata: { sandbox_id: id, path: "a" } }],
        rest: `PUT /v1/sandboxes/${id}/files/a`,
        body: "x",
        status: "FAILED_PRECONDITION",
        message: "sandbox is not running",
      });
    }
  });
});

describe("list", () => {
  test("pages, and by codebase, state, labels and owner", async () => {
    const [one, other] = [await api.codebase({}, "lister"), await api.codebase({}, "lister")];
    const ids: unknown[] = [];
    for (let index = 0; index < 5; index++) {
      ids.push((await create({ codebase_id: one, labels: { parity: index % 2 === 0 ? "even" : "odd" } })).id);
    }
    const elsewhere = (await create({ codebase_id: other })).id;
    await api.call("SandboxService.StartSandbox", { sandbox_id: ids[3] });

    const list = async (request: Message): Promise<unknown[]> => {
      const { sandboxes } = await api.call("SandboxService.ListSandboxes", request);
      return (sandboxes as Message[]).map(({ id }) => id);
    };
    const inOrder = await list({ codebase_id: one });
    expect(inOrder.toSorted()).toEqual(ids.toSorted());
    expect((await list({ owner_id: "lister" })).toSorted()).toEqual([...ids, elsewhere].toSorted());
    expect(await list({ codebase_id: one, status: "SANDBOX_STATUS_RUNNING" })).toEqual([ids[3]]);
    expect((await list({ codebase_id: one, labels: { parity: "odd" } })).toSorted()).toEqual(
      [ids[1], ids[3]].toSorted(),
    );
    expect(await list({ codebase_id: UNKNOWN.codebase })).toEqual([]);

    const pages: unknown[][] = [];
    let token = "";
    do {
      const { json } = await api.rest.get(`/v1/sandboxes?codebase_id=${one}&page_size=2&page_token=${token}`);
      pages.push((json.sandboxes as Message[]).map(({ id }) => id));
      token = json.nextPageToken as string;
    } while (token !== "");
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    expect(pages.flat()).toEqual(inOrder);
    const filtered = await api.rest.get(`/v1/sandboxes?codebaseId=${one}&status=running&labels[parity]=odd`);
    expect(filtered.json).toMatchObject({ sandboxes: [{ id: ids[3] }], nextPageToken: "" });
  });
});

describe("network", () => {
  test("the hosts of a filtered network are kept, and others are in force at once in a running sandbox", async () => {
    const codebase = await api.codebase();
    const id = await api.sandbox(codebase, { network_rules: [{ host: "a.example.com:443" }] });
    const rules = [{ host: "a.example.com", ports: [443], methods: [], paths: [], addresses: [] }];
    expect(await api.call("SandboxService.GetSandbox", { sandbox_id: id })).toMatchObject({
      network: "NETWORK_MODE_FILTERED",
      network_rules: rules,
    });
    const resolved = async (): Promise<string> =>
      (
        await api.exec(
          id,
          "for host in a.example.com pypi.org; do getent hosts $host >/dev/null && echo $host; done; true",
        )
      ).stdout as string;
    expect(await resolved()).toBe("a.example.com\n");
    const update = { network_rules: [{ host: "pypi.org", ports: [443] }] };
    const updated = await api.call("SandboxService.UpdateNetwork", { sandbox_id: id, ...update });
    expect(updated).toMatchObject({ id, network_rules: [{ host: "pypi.org", ports: [443] }] });
    expect(await resolved()).toBe("pypi.org\n");
    const { status, json } = await api.rest.request("PUT", `/v1/sandboxes/${id}/network`, {
      networkRules: [{ host: "*.example.com", addresses: ["93.184.216.0/24"] }],
    });
    const kept = { host: "*.example.com", ports: [443, 80], addresses: ["93.184.216.0/24"] };
    expect([status, json]).toMatchObject([200, { networkRules: [kept] }]);
    expect(await resolved()).toBe("a.example.com\n");
  });

  test("a host beyond the operator's list is refused by name, and the old list stays in force", async () => {
    const codebase = await api.codebase();
    const id = await api.sandbox(codebase, { network_rules: [{ host: "pypi.org:443" }] });
    await api.refused({
      method: "SandboxService.UpdateNetwork",
      request: { sandbox_id: id, network_rules: [{ host: "pypi.org:443" }, { host: "evil.org:443" }] },
      rest: `PUT /v1/sandboxes/${id}/network`,
      status: "RESOURCE_EXHAUSTED",
      message: "evil.org:443 is not among the hosts that sandboxes of this server may reach",
    });
    const kept = await api.call("SandboxService.GetSandbox", { sandbox_id: id });
    expect(kept).toMatchObject({ network_rules: [{ host: "pypi.org", ports: [443] }] });
    const closed = await api.sandbox(codebase);
    await api.refused({
      method: "SandboxService.UpdateNetwork",
      request: { sandbox_id: closed, network_rules: [{ host: "pypi.org:443" }] },
      rest: `PUT /v1/sandboxes/${closed}/network`,
      status: "INVALID_ARGUMENT",
      message: "the network none has no list of hosts; filtered has",
    });
  });
});

describe("expiry", () => {
  test("another time takes the place of the one before, unless it is only to be later", async () => {
    const id = await api.sandbox(await api.codebase(), { expires_in: { seconds: 3600 } });
    const expiring = async (seconds: number, more: object = {}) => {
      const request = { sandbox_id: id, expires_in: { seconds }, ...more };
      const answer = await api.call("SandboxService.UpdateExpiry", request);
      return Number((answer as { readonly expires_at: { readonly seconds: string } }).expires_at.seconds);
    };
    const first = await expiring(1200, { extend_only: true });
    const sooner = await expiring(1200);
    expect(sooner).toBeLessThan(first);
    expect(await expiring(600, { extend_only: true })).toBe(sooner);
    expect(await expiring(1800, { extend_only: true })).toBeGreaterThan(sooner);
    const { status, json } = await api.rest.request("PUT", `/v1/sandboxes/${id}/expiry`, { expiresIn: "7200s" });
    expect([status, json]).toMatchObject([200, { id, expiresAt: expect.any(String) }]);
    const refused = { method: "SandboxService.UpdateExpiry", status: "INVALID_ARGUMENT" } as const;
    const rest = `PUT /v1/sandboxes/${id}/expiry`;
    await api.refused({ ...refused, request: { sandbox_id: id }, rest, message: "expires_in is required" });
    const late = { sandbox_id: id, expires_in: { seconds: 400 * 24 * 3600 } };
    await api.refused({ ...refused, request: late, message: "expires_in is at most 31536000 s" });
    await api.call("SandboxService.UpdateExpiry", { sandbox_id: id, expires_in: { nanos: 1_000_000 } });
    await eventually(async () => {
      expect((await api.rest.request("GET", `/v1/sandboxes/${id}`)).status).toBe(404);
    });
  });
});

describe("a workspace that is the home", () => {
  test("is at both places, with the same rules, and commands run in it", async () => {
    const codebase = await api.codebase({ "a.txt": "a", ".env": "SECRET=1" });
    const permissions = [
      { pattern: "**", permission: "PERMISSION_WRITE" },
      { pattern: "/.env", permission: "PERMISSION_NONE", priority: 1 },
    ];
    const request = { permissions, workspace_home: "/home/user", sync: "SYNC_MODE_MANUAL" };
    const id = await api.sandbox(codebase, request);
    expect(await api.call("SandboxService.GetSandbox", { sandbox_id: id })).toMatchObject({
      workspace_home: "/home/user",
    });
    const command = "pwd; echo $HOME ~; ls -A; cat .env; echo new > ~/b.txt; cat /workspace/b.txt; ls /home/agent";
    const { stdout } = await api.call("SandboxService.Exec", { sandbox_id: id, command });
    expect(stdout).toBe("/home/user\n/home/user /home/user\na.txt\nnew\n");
    const { changes } = (await api.call("SandboxService.ListChanges", { sandbox_id: id })) as {
      readonly changes: object[];
    };
    expect(changes).toMatchObject([{ path: "/b.txt" }]);
    for (const place of ["/home/agent", "/root", "/home/../etc", "home/user", "/home/a/b"]) {
      await api.refused({
        method: "SandboxService.CreateSandbox",
        request: { codebase_id: codebase, workspace_home: place },
        rest: "POST /v1/sandboxes",
        status: "INVALID_ARGUMENT",
        message: "workspace_home is /home/NAME, where NAME is a user's and not agent",
      });
    }
  });
});

describe("permissions", () => {
  test("new rules are in force at once in a running sandbox", async () => {
    const codebase = await api.codebase({ "a.txt": "a", "b.txt": "b" });
    const id = await api.sandbox(codebase);
    expect((await api.exec(id, "cat a.txt b.txt")).stdout).toBe("ab");
    const updated = await api.call("SandboxService.UpdatePermissions", {
      sandbox_id: id,
      permissions: [
        { pattern: "**", permission: "PERMISSION_READ" },
        { pattern: "/a.txt", permission: "PERMISSION_NONE" },
      ],
    });
    expect(updated).toMatchObject({
      id,
      status: "SANDBOX_STATUS_RUNNING",
      permissions: [{ pattern: "**" }, { pattern: "/a.txt", type: "PATTERN_TYPE_FILE" }],
    });
    expect(await api.exec(id, "ls; cat a.txt 2>/dev/null; echo x 2>/dev/null > b.txt; cat b.txt")).toMatchObject({
      stdout: "b.txt\nb",
    });
    const { status, json } = await api.rest.request("PUT", `/v1/sandboxes/${id}/permissions`, {
      permissions: [{ pattern: "**", permission: "write" }],
    });
    expect({ status, json }).toMatchObject({
      status: 200,
      json: { permissions: [{ pattern: "**", permission: "PERMISSION_WRITE", priority: 0 }] },
    });
    expect((await api.exec(id, "echo x > b.txt; cat a.txt b.txt")).stdout).toBe("ax\n");
    expect(await api.call("SandboxService.GetSandbox", { sandbox_id: id })).toMatchObject({
      permissions: [{ pattern: "**", permission: "PERMISSION_WRITE" }],
    });
  });

  test("refused rules leave the old ones in force", async () => {
    const codebase = await api.codebase({ "a.txt": "a" });
    const id = await api.sandbox(codebase);
    await api.refused({
      method: "SandboxService.UpdatePermissions",
      request: {
        sandbox_id: id,
        permissions: [{ pattern: "/a.txt", permission: "PERMISSION_NONE" }, { pattern: "x" }],
      },
      rest: `PUT /v1/sandboxes/${id}/permissions`,
      status: "INVALID_ARGUMENT",
      message: "permissions[1]: permission is required: none, view, read or write",
    });
    expect((await api.exec(id, "cat a.txt")).stdout).toBe("a");
  });

  test("explain tells which rule decides and which ones lost", async () => {
    const id = await api.sandbox(await api.codebase(), {
      permissions: [
        { pattern: "**", permission: "PERMISSION_READ" },
        { pattern: "/src/**", permission: "PERMISSION_WRITE" },
      ],
    });
    const write = { pattern: "/src/**", type: "PATTERN_TYPE_GLOB", permission: "PERMISSION_WRITE", priority: 0 };
    const read = { pattern: "**", type: "PATTERN_TYPE_GLOB", permission: "PERMISSION_READ", priority: 0 };
    expect(await api.call("SandboxService.ExplainPath", { sandbox_id: id, path: "/workspace/src/a.ts" })).toEqual({
      path: "/src/a.ts",
      permission: "PERMISSION_WRITE",
      deciding: { index: 1, rule: write, reason: expect.any(String) },
      losing: [{ index: 0, rule: read, reason: expect.any(String) }],
      explanation: expect.stringMatching(/^\/src\/a\.ts is write: /),
    });
    expect((await api.rest.get(`/v1/sandboxes/${id}/explain?path=README.md`)).json).toEqual({
      path: "/README.md",
      permission: "PERMISSION_READ",
      deciding: { index: 0, rule: read, reason: expect.any(String) },
      losing: [],
      explanation: expect.stringMatching(/^\/README\.md is read: /),
    });
    const hidden = await api.sandbox(await api.codebase(), { permissions: [] });
    expect((await api.rest.get(`/v1/sandboxes/${hidden}/explain?path=a`)).json).toMatchObject({
      permission: "PERMISSION_NONE",
      deciding: null,
      losing: [],
    });
  });

  const RULES: readonly (readonly [string, Message, Message | undefined, string | RegExp])[] = [
    ["no level", { pattern: "a" }, undefined, "permissions[1]: permission is required: none, view, read or write"],
    [
      "an unknown level",
      { pattern: "a", permission: 9 },
      undefined,
      "permissions[1]: permission: 9 is not a known value",
    ],
    [
      "an unknown type",
      { pattern: "a", permission: 3, type: 8 },
      undefined,
      "permissions[1]: type: 8 is not a known value",
    ],
    ["no pattern", { permission: "PERMISSION_READ" }, undefined, /^permissions: .*1/],
    ["a pattern that climbs", { pattern: "../x", permission: "PERMISSION_READ" }, undefined, /^permissions: .*1/],
  ];

  test.each(RULES)("API-17 a rule with %s is refused with its index", async (_title, rule, body, message) => {
    const good = { pattern: "**", permission: "PERMISSION_READ" };
    const request = { codebase_id: await api.codebase(), permissions: [good, rule] };
    await api.refused({
      method: "SandboxService.CreateSandbox",
      request,
      rest: "POST /v1/sandboxes",
      body: body ?? request,
      status: "INVALID_ARGUMENT",
      message,
    });
  });

  test("an unknown name of a level is refused over REST, not taken for none", async () => {
    const { status, json } = await api.rest.post("/v1/sandboxes", {
      codebase_id: await api.codebase(),
      permissions: [{ pattern: "**", permission: "PERMISSION_ALL" }],
    });
    expect({ status, json }).toMatchObject({
      status: 400,
      json: {
        code: 3,
        message: 'permissions[0].permission must be one of none, view, read, write, not "PERMISSION_ALL"',
      },
    });
  });
});

describe("refused", () => {
  const CREATE = { method: "SandboxService.CreateSandbox", rest: "POST /v1/sandboxes" } as const;
  const creations: readonly (readonly [string, (codebase: string) => Omit<Refusal, "method">])[] = [
    ["no codebase", () => ({ status: "INVALID_ARGUMENT", message: "codebase_id is required" })],
    [
      "an unknown codebase",
      () => ({ request: { codebase_id: UNKNOWN.codebase }, status: "NOT_FOUND", message: "codebase not found" }),
    ],
    [
      "an id of another shape",
      () => ({ request: { codebase_id: "codebase" }, status: "INVALID_ARGUMENT", message: /^codebase_id is not/ }),
    ],
    [
      "a runtime that is not there",
      (id) => ({
        request: { codebase_id: id, runtime: "RUNTIME_TYPE_DOCKER" },
        status: "FAILED_PRECONDITION",
        message: "the runtime docker is not available on this server",
      }),
    ],
    [
      "a runtime that nobody knows",
      (id) => ({
        request: { codebase_id: id, runtime: 77 },
        status: "INVALID_ARGUMENT",
        message: "runtime: 77 is not a known value",
      }),
    ],
    [
      "a network that is not enabled",
      (id) => ({
        request: { codebase_id: id, network: "NETWORK_MODE_HOST" },
        status: "FAILED_PRECONDITION",
        message: "the network mode host is not enabled on this server",
      }),
    ],
    [
      "a negative expiry",
      (id) => ({
        request: { codebase_id: id, expires_in: { seconds: -1 } },
        body: { codebase_id: id, expires_in: "-1s" },
        status: "INVALID_ARGUMENT",
        message: "expires_in must not be negative",
      }),
    ],
    [
      "an expiry beyond the server's",
      (id) => ({
        request: { codebase_id: id, expires_in: { seconds: 400 * 86_400 } },
        body: { codebase_id: id, expires_in: `${400 * 86_400}s` },
        status: "INVALID_ARGUMENT",
        message: `expires_in is at most ${365 * 86_400} s`,
      }),
    ],
    [
      "negative resources",
      (id) => ({
        request: { codebase_id: id, resources: { memory_bytes: "-5" } },
        status: "INVALID_ARGUMENT",
        message: "resources.memory_bytes must not be negative",
      }),
    ],
    [
      "absurd resources",
      (id) => ({
        request: { codebase_id: id, resources: { disk_bytes: "9223372036854775807" } },
        status: "INVALID_ARGUMENT",
        message: "resources.disk_bytes is too large",
      }),
    ],
    [
      "a preset that nobody knows",
      (id) => ({
        request: { codebase_id: id, preset: "everything" },
        status: "INVALID_ARGUMENT",
        message: /^there is no preset "everything"; known: /,
      }),
    ],
    [
      "a label without a name",
      (id) => ({
        request: { codebase_id: id, labels: { "": "x" } },
        status: "INVALID_ARGUMENT",
        message: "a label needs a name",
      }),
    ],
    [
      "a variable with a name that is none",
      (id) => ({
        request: { codebase_id: id, env: { "A=B": "x" } },
        status: "INVALID_ARGUMENT",
        message: '"A=B" is not a name for an environment variable',
      }),
    ],
    [
      "a pinned version that is synced",
      (id) => ({
        request: { codebase_id: id, codebase_version: 1, sync: "SYNC_MODE_ON_EXEC" },
        status: "INVALID_ARGUMENT",
        message: "a sandbox that is pinned to a version cannot sync to its codebase",
      }),
    ],
  ];

  test.each(creations)("create: %s", async (_title, row) => {
    await api.refused({ ...CREATE, ...row(await api.codebase({ "a.txt": "a" })) });
  });

  const METHODS: readonly (readonly [MethodName, string, Message])[] = [
    ["SandboxService.GetSandbox", "GET /v1/sandboxes/{id}", {}],
    ["SandboxService.StartSandbox", "POST /v1/sandboxes/{id}/start", {}],
    ["SandboxService.StopSandbox", "POST /v1/sandboxes/{id}/stop", {}],
    ["SandboxService.DestroySandbox", "DELETE /v1/sandboxes/{id}", {}],
    ["SandboxService.UpdatePermissions", "PUT /v1/sandboxes/{id}/permissions", {}],
    ["SandboxService.UpdateNetwork", "PUT /v1/sandboxes/{id}/network", {}],
    ["SandboxService.UpdateExpiry", "PUT /v1/sandboxes/{id}/expiry", {}],
    ["SandboxService.ExplainPath", "GET /v1/sandboxes/{id}/explain?path=a", { path: "a" }],
    ["SandboxService.Exec", "POST /v1/sandboxes/{id}/exec", { command: "true" }],
    ["SandboxService.ExecStream", "POST /v1/sandboxes/{id}/exec/stream", { command: "true" }],
    ["SandboxService.CreateSession", "POST /v1/sandboxes/{id}/sessions", {}],
    ["SandboxService.ListChanges", "GET /v1/sandboxes/{id}/changes", {}],
    ["SandboxService.DiffChanges", "GET /v1/sandboxes/{id}/diff", {}],
    ["SandboxService.ApplyChanges", "POST /v1/sandboxes/{id}/changes/apply", {}],
    ["SandboxService.DiscardChanges", "POST /v1/sandboxes/{id}/changes/discard", {}],
    ["SandboxService.ReadFile", "GET /v1/sandboxes/{id}/files/a", { path: "a" }],
    ["SandboxService.ListDirectory", "GET /v1/sandboxes/{id}/files", {}],
    ["SandboxService.StatFile", "GET /v1/sandboxes/{id}/stat/a", { path: "a" }],
    ["SandboxService.MakeDirectory", "POST /v1/sandboxes/{id}/directories", { path: "a" }],
    ["SandboxService.RemoveFile", "DELETE /v1/sandboxes/{id}/files/a", { path: "a" }],
    ["SandboxService.MoveFile", "POST /v1/sandboxes/{id}/move", { from_path: "a", to_path: "b" }],
  ];

  test.each(METHODS)("API-07 %s: no id, an unknown one, one of another shape", async (method, rest, request) => {
    const refused = (id: string, expected: Pick<Refusal, "status" | "message">): Promise<void> =>
      api.refused({
        method,
        request: { sandbox_id: id, ...request },
        rest: rest.replace("{id}", encodeURIComponent(id)),
        ...expected,
      });
    await refused("", { status: "INVALID_ARGUMENT", message: "sandbox_id is required" });
    await refused(UNKNOWN.sandbox, { status: "NOT_FOUND", message: "sandbox not found" });
    await refused("sb_0123456789abcdef", { status: "NOT_FOUND", message: "sandbox not found" });
    const message = "sandbox_id is not the id of a sandbox: sb_ and hexadecimal digits";
    for (const id of ["sb_", "SB_0123456789ABCDEF", "../sb_0", UNKNOWN.codebase, "sb_0123456789abcdef/../x"]) {
      await refused(id, { status: "INVALID_ARGUMENT", message });
    }
  });

  test("list: a bad token, an unknown state", async () => {
    await api.refused({
      method: "SandboxService.ListSandboxes",
      request: { page_token: "x" },
      rest: "GET /v1/sandboxes?page_token=x",
      status: "INVALID_ARGUMENT",
      message: "page_token is not one that this server gave out",
    });
    await api.refused({
      method: "SandboxService.ListSandboxes",
      request: { status: 9 },
      rest: "GET /v1/sandboxes?status=9",
      status: "INVALID_ARGUMENT",
      message: "status: 9 is not a known value",
    });
  });

  test("explain: no path, one that climbs", async () => {
    const id = await api.sandbox(await api.codebase());
    const refused = (path: string, message: string): Promise<void> =>
      api.refused({
        method: "SandboxService.ExplainPath",
        request: { sandbox_id: id, path },
        rest: `GET /v1/sandboxes/${id}/explain?path=${encodeURIComponent(path)}`,
        status: "INVALID_ARGUMENT",
        message,
      });
    await refused("", "path is required");
    await refused("/a/../../b", "path has a .. in it; name the file from the root of the workspace");
  });
});

testsCover(api, COVERAGE.sandboxes);
