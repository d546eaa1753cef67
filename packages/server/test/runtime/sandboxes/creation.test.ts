import { getPreset } from "@agentfense/permission";
import { describe, expect, test } from "vitest";
import type { CreateSandboxRequest } from "../../../src/runtime/sandboxes/api.ts";
import { newSandbox } from "../../../src/runtime/sandboxes/creation.ts";
import { SANDBOX_DEFAULTS } from "../../../src/runtime/sandboxes/options.ts";
import { ALICE, refusal, SandboxesFixture, sandboxRequest } from "./fixture.ts";

const CODEBASE = {
  id: "cb_0123456789abcdef",
  name: "project",
  ownerId: "alice",
  size: 0,
  fileCount: 0,
  createdAtMs: 0,
  updatedAtMs: 0,
  version: 3,
};

const make = (
  changes: Partial<CreateSandboxRequest> = {},
  terms: Partial<Parameters<typeof newSandbox>[2]> = {},
): ReturnType<typeof newSandbox> =>
  newSandbox({ ...sandboxRequest(changes), secrets: [] }, CODEBASE, {
    runtimes: ["bwrap"],
    defaults: SANDBOX_DEFAULTS,
    nowMs: 1000,
    ...terms,
  });

const refused = (work: () => unknown): { code?: string; message?: string; hint?: string } => {
  try {
    work();
  } catch (error) {
    return error as object;
  }
  throw new Error("it was not refused");
};

describe("the rules of a new sandbox", () => {
  test("have the types that were inferred, and mean the same when they are read again", () => {
    const { rules } = make({
      rules: [
        { pattern: "/src/a.ts", permission: "read" },
        { pattern: "/docs/", permission: "read", type: "glob" },
        { pattern: "build*/", permission: "none" },
        { pattern: "*.key", permission: "none", priority: 100 },
        { pattern: "Makefile", permission: "read", type: "file" },
      ],
    });
    expect(rules).toEqual([
      { pattern: "/src/a.ts", permission: "read", type: "file" },
      { pattern: "/docs/", permission: "read", type: "directory" },
      { pattern: "build*/", permission: "none", type: "glob" },
      { pattern: "*.key", permission: "none", priority: 100, type: "glob" },
      { pattern: "Makefile", permission: "read", type: "file" },
    ]);
    expect(make({ rules }).rules).toEqual(rules);
  });

  test("begin with those of the preset", () => {
    const { rules } = make({ preset: "agent-safe", rules: [{ pattern: "/logs/**", permission: "write" }] });
    expect(rules.length).toBe(getPreset("agent-safe").length + 1);
    expect(rules.at(-1)).toEqual({ pattern: "/logs/**", permission: "write", type: "glob" });
  });

  test("are refused with the index they have in the request", () => {
    const bad = { pattern: "!x", permission: "read" } as const;
    const good = { pattern: "/a", permission: "read" } as const;
    for (const preset of ["", "agent-safe"]) {
      const { code, message } = refused(() => make({ preset, rules: [good, bad] }));
      expect(code).toBe("INVALID_ARGUMENT");
      expect(message).toMatch(/^permissions: rule 1 \("!x"\): negation does not exist/);
    }
    expect(refused(() => make({ preset: "nothing" }))).toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringMatching(/there is no preset "nothing"; known: .*agent-safe/),
    });
  });

  test("may be none at all: then everything is hidden", () => {
    expect(make({ rules: [] }).rules).toEqual([]);
  });
});

describe("a request for a sandbox", () => {
  test.each<[string, Partial<CreateSandboxRequest>, string]>([
    ["no time to live", { expiresInMs: 0 }, "expires_in must be above 0"],
    ["NaN to live", { expiresInMs: Number.NaN }, "expires_in must be above 0"],
    ["too long a life", { expiresInMs: 1e15 }, "expires_in is at most 31536000 s"],
    ["a negative limit", { resources: { memoryBytes: -1 } }, "resources.memory_bytes must be a whole number above 0"],
    ["a broken limit", { resources: { pidsLimit: 1.5 } }, "resources.pids_limit must be a whole number above 0"],
    ["hardly any memory", { resources: { memoryBytes: 1 } }, "memoryBytes cannot be 1"],
    ["a bad variable", { env: { "A=B": "x" } }, '"A=B" is not a name for an environment variable'],
    ["NUL in a variable", { env: { A: "x\0y" } }, "the value of A contains a NUL character"],
    ["a label without a name", { labels: { "": "x" } }, "a label needs a name"],
    ["a long label", { labels: { a: "x".repeat(2000) } }, 'the value of the label "a" has more than 1024 bytes'],
    [
      "a version below 0",
      { codebaseVersion: -1 },
      "codebase_version is a version of the codebase, or 0 for the newest",
    ],
    [
      "a pinned one that syncs",
      { codebaseVersion: 2, sync: "on-exec" },
      "a sandbox that is pinned to a version cannot sync to its codebase",
    ],
  ])("with %s is refused", (_title, changes, message) => {
    expect(refused(() => make(changes))).toMatchObject({ code: "INVALID_ARGUMENT", message });
  });

  test("gets what it does not say from the server", () => {
    expect(make()).toMatchObject({ runtime: "bwrap", sync: "on-exec", expiresAtMs: 1000 + 86_400_000, resources: {} });
    const defaults = {
      ...SANDBOX_DEFAULTS,
      expirationMs: 0,
      sync: "manual" as const,
      resources: { pidsLimit: 500 },
      maxResources: { pidsLimit: 200, memoryBytes: 2 ** 30 },
    };
    const record = make({}, { defaults });
    expect(record).toMatchObject({ sync: "manual", resources: { pidsLimit: 200, memoryBytes: 2 ** 30 } });
    expect(record.expiresAtMs).toBeUndefined();
    expect(refused(() => make({ resources: { memoryBytes: 2 ** 31 } }, { defaults }))).toMatchObject({
      code: "LIMIT_EXCEEDED",
      message: "resources.memory_bytes is at most 1073741824 on this server",
    });
    expect(make({ codebaseVersion: 2 }).sync).toBe("never");
  });

  test("for a runtime that is not there is refused, or served by the fallback", () => {
    expect(refused(() => make({ runtime: "docker" }))).toMatchObject({
      code: "RUNTIME_UNAVAILABLE",
      message: "the runtime docker is not available on this server",
    });
    expect(make({ runtime: "docker", image: "debian" }, { fallbackRuntime: "bwrap" })).toMatchObject({
      runtime: "bwrap",
      image: "",
    });
    expect(make({ runtime: "docker", image: "debian:12" }, { runtimes: ["bwrap", "docker"] })).toMatchObject({
      runtime: "docker",
      image: "debian:12",
    });
    expect(refused(() => make({ runtime: "docker", image: "-v" }, { runtimes: ["docker"] })).code).toBe(
      "INVALID_ARGUMENT",
    );
  });

  test("with a list of hosts has a filtered network, and keeps the rules with those of presets", () => {
    const defaults = { ...SANDBOX_DEFAULTS, networks: ["filtered"] as const };
    const networkList = { allow: ["GitHub.com:22,443", { host: "*.example.com", ports: [8443] }], presets: ["npm"] };
    const { network, networkRules } = make({ network: undefined, networkList }, { defaults });
    expect(network).toBe("filtered");
    expect(networkRules.slice(-2)).toEqual([
      { host: "github.com", ports: [22, 443] },
      { host: "*.example.com", ports: [8443] },
    ]);
    expect(networkRules.map(({ host }) => host)).toContain("registry.npmjs.org");
    expect(make({ network: "filtered" }, { defaults }).networkRules).toEqual([]);
  });

  test("with hosts is refused when they are malformed, or the network has no list", () => {
    const defaults = { ...SANDBOX_DEFAULTS, networks: ["filtered"] as const };
    const tried = (allow: unknown[], more: Partial<CreateSandboxRequest> = {}) =>
      refused(() => make({ network: "filtered", networkList: { allow }, ...more }, { defaults }));
    expect(tried(["pypi.org", "10.0.0.1"])).toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining('host 2 of the network\'s list: "10.0.0.1"'),
    });
    expect(tried(["pypi.org"], { network: "none" })).toMatchObject({
      code: "INVALID_ARGUMENT",
      message: "the network none has no list of hosts; filtered has",
    });
    expect(refused(() => make({ network: "filtered", networkList: { presets: ["nmp"] } }, { defaults }))).toMatchObject(
      {
        code: "INVALID_ARGUMENT",
        message: 'there is no network preset "nmp"',
      },
    );
    expect(refused(() => make({ network: undefined, networkList: { presets: ["npm"] } }))).toMatchObject({
      code: "RUNTIME_UNAVAILABLE",
      hint: "add filtered to runtime.networks in the server's configuration",
    });
  });

  test("names no host beyond the operator's list, and the refusal names the rule", () => {
    const networkAllow = [{ host: "*.example.com", ports: [443] }];
    const defaults = { ...SANDBOX_DEFAULTS, networks: ["filtered"] as const, networkAllow };
    const listing = (...allow: string[]) => make({ network: "filtered", networkList: { allow } }, { defaults });
    expect(listing("a.example.com:443").networkRules).toEqual([{ host: "a.example.com", ports: [443] }]);
    for (const rule of ["example.com:443", "a.example.com:22", "*.org.example:443", "other.org:443"]) {
      expect(refused(() => listing("b.example.com:443", rule))).toMatchObject({
        code: "LIMIT_EXCEEDED",
        message: `${rule} is not among the hosts that sandboxes of this server may reach`,
        hint: expect.stringContaining("runtime.network_allow"),
      });
    }
  });

  test("lists addresses of the operator's networks only where the operator does, and a program in its own engine", () => {
    const defaults = { ...SANDBOX_DEFAULTS, networks: ["filtered"] as const };
    const list = { network: "filtered", networkList: { allow: ["git.example@10.1.0.0/16"] } } as const;
    expect(refused(() => make(list, { defaults }))).toMatchObject({ code: "LIMIT_EXCEEDED" });
    const here = [{ host: "git.example", ports: [443, 80], addresses: ["10.0.0.0/8"] }];
    const rules = [{ ...here[0], addresses: ["10.1.0.0/16"] }];
    expect(make(list, { defaults: { ...defaults, networkAllow: here } }).networkRules).toEqual(rules);
    expect(make(list, { defaults: { ...defaults, networkAllow: undefined } }).networkRules).toEqual(rules);
    const publicly = { ...list, networkList: { allow: ["git.example@93.184.216.34"] } };
    expect(make(publicly, { defaults }).networkRules).toMatchObject([{ addresses: ["93.184.216.34/32"] }]);
  });

  test("for a network that is not enabled says what to configure", () => {
    expect(refused(() => make({ network: "host" }))).toMatchObject({
      code: "RUNTIME_UNAVAILABLE",
      message: "the network mode host is not enabled on this server",
      hint: "add host to runtime.networks in the server's configuration",
    });
    const defaults = { ...SANDBOX_DEFAULTS, networks: ["none", "private"] as const };
    expect(make({ network: "private" }, { defaults }).network).toBe("private");
  });

  test("beyond the owner's number is refused, and one more fits when one is gone", async () => {
    await using place = await SandboxesFixture.open({ defaults: { maxPerOwner: 2 } });
    const made = await Promise.allSettled([1, 2, 3, 4].map(() => place.create()));
    expect(made.filter(({ status }) => status === "fulfilled").length).toBe(2);
    expect(await refusal(place.create())).toEqual({
      code: "LIMIT_EXCEEDED",
      message: "an owner has at most 2 sandboxes",
    });
    const page = await place.sandboxes.list(ALICE, {
      pageSize: 0,
      pageToken: "",
      codebaseId: "",
      ownerId: "",
      labels: {},
    });
    await place.sandboxes.destroy(ALICE, page.items[0]!.id);
    expect((await place.create()).status).toBe("PENDING");
  });
});
