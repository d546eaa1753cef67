import { userInfo } from "node:os";
import { SandboxStatus } from "@agentfense/protocol/common";
import { describe, expect, test } from "vitest";
import { registryError } from "../../../../test/support/scripted-server.ts";
import { agentfense } from "../run-cli.ts";
import { SANDBOX, scriptedServer } from "./scripted-server.ts";

const CODEBASE = {
  id: "cb_1",
  name: "bad\u001b[31mname",
  ownerId: "alice",
  size: 2048n,
  fileCount: 3,
  version: 7n,
  updatedAt: { seconds: 1_770_000_000n, nanos: 5 },
};

describe("answers", () => {
  test("a list is a table, all pages of it, with control characters escaped", async () => {
    const server = await scriptedServer({
      codebases: {
        listCodebases: ({ pageToken, ownerId }) =>
          pageToken === ""
            ? { codebases: [CODEBASE], nextPageToken: `next ${ownerId}` }
            : { codebases: [{ ...CODEBASE, id: "cb_22", name: pageToken, size: 5n }] },
      },
    });
    expect(await server.run(["codebase", "list", "--owner", "al"])).toEqual({
      code: 0,
      stderr: "",
      stdout: [
        "ID     NAME             OWNER  VERSION  FILES     SIZE  UPDATED",
        "cb_1   bad\\x1b[31mname  alice        7      3  2.0 KiB  2026-02-02T02:40:00Z",
        "cb_22  next al          alice        7      3      5 B  2026-02-02T02:40:00Z",
        "",
      ].join("\n"),
    });
  });

  test("secrets are put from stdin and elsewhere, listed, removed, and named for a sandbox", async () => {
    const asked: unknown[] = [];
    const value = "a value of a secret";
    const secret = { name: "KEY", ownerId: "alice", hosts: ["api.test"], place: "header x-api-key" };
    const at = { seconds: 1_770_000_000n, nanos: 0 };
    const server = await scriptedServer({
      sandboxes: {
        putSecret({ $typeName: _, ...request }) {
          asked.push(request);
          return { ...secret, createdAt: at, updatedAt: at };
        },
        createSandbox: ({ secrets }) => {
          asked.push(...secrets.map(({ $typeName: _, ...one }) => one));
          return SANDBOX;
        },
        listSecrets: () => ({ secrets: [{ ...secret, createdAt: at, updatedAt: at }] }),
        deleteSecret({ name, ownerId }) {
          asked.push([name, ownerId]);
          return {};
        },
      },
    });
    const put = ["secret", "put", "KEY@api.test=header x-api-key", "--owner", "alice"];
    expect(await server.run(put, { input: `${value}\n` })).toMatchObject({ code: 0, stdout: "keeps KEY\n" });
    await server.run([...put, "--from", "env:MINE"], { env: { MINE: value } });
    expect(asked.splice(0)).toEqual([1, 2].map(() => ({ ...secret, value })));
    const wrong = await server.run(["secret", "put", "KEY@api.test", "--from", value]);
    expect([wrong.code, wrong.stderr.includes(value)]).toEqual([2, false]);
    expect((await server.run(["secret", "list"])).stdout).toMatch(/^KEY +alice +api\.test +header x-api-key/m);
    expect((await server.run(["secret", "remove", "KEY"])).stdout).toBe("removed KEY\n");
    // Without a key nobody but this machine says who we are.
    expect(asked.splice(0)).toEqual([["KEY", userInfo().username]]);
    await server.run(["secret", "put", "KEY@api.test=header x-api-key"], { input: value });
    expect(asked.splice(0)).toEqual([{ ...secret, value, ownerId: userInfo().username }]);
    await server.run(["secret", "remove", "KEY", "--api-key", "key"]);
    expect(asked.splice(0)).toEqual([["KEY", ""]]);
    const brought = ["--secret", "MINE@api.test,b.test=query k", "--secret-from", "MINE=env:OTHER"];
    await server.run(["sandbox", "create", "cb_1", "--secret", "KEY", ...brought], { env: { OTHER: value } });
    expect(asked.splice(0)).toEqual([
      { name: "MINE", value, hosts: ["api.test", "b.test"], place: "query k" },
      { name: "KEY", hosts: [], place: "" },
    ]);
    const twice = await server.run(["sandbox", "create", "cb_1", "--secret", "KEY", "--secret", "KEY@api.test"]);
    expect(twice).toMatchObject({ code: 2, stderr: expect.stringContaining("--secret names KEY twice") });
  });

  test("homes are listed, deleted, and named for a sandbox", async () => {
    const asked: unknown[] = [];
    const homes = [{ name: "tools", ownerId: "alice", sandboxId: "sb_1" }];
    const server = await scriptedServer({
      sandboxes: {
        listHomes: ({ ownerId }) => ({ homes: ownerId === "al" ? homes : [] }),
        deleteHome: ({ name, ownerId }) => {
          asked.push([name, ownerId]);
          return {};
        },
        createSandbox: ({ home }) => ({ ...SANDBOX, id: "sb_2", home }),
      },
    });
    expect((await server.run(["home", "list", "--owner", "al"])).stdout).toBe(
      "NAME   OWNER  SANDBOX\ntools  alice  sb_1\n",
    );
    const { stdout } = await server.run(["home", "list", "--owner", "al", "--json"]);
    expect(JSON.parse(stdout)).toEqual(homes);
    expect((await server.run(["home", "delete", "tools", "--owner", "al"])).stdout).toBe("deleted tools\n");
    expect(asked).toEqual([["tools", "al"]]);
    const created = await server.run(["sandbox", "create", "cb_1", "--home", "tools"]);
    expect(created.stdout).toMatch(/^home +tools$/m);
  });

  test("hosts are given to a sandbox, shown, and replaced", async () => {
    const asked: unknown[] = [];
    const listed = { ...SANDBOX, network: 4, networkRules: [{ host: "pypi.org", ports: [443] }] };
    const server = await scriptedServer({
      sandboxes: {
        createSandbox: ({ network, networkRules, networkPresets }) => {
          asked.push([network, networkRules.map(({ host }) => host), networkPresets]);
          return { id: "sb_2", ...listed };
        },
        getSandbox: () => ({ id: "sb_2", ...listed }),
        updateNetwork: ({ sandboxId, networkRules, networkPresets }) => {
          asked.push([sandboxId, networkRules.map(({ host }) => host), networkPresets]);
          return { ...listed, id: "sb_2", networkRules };
        },
      },
    });
    const hosts = ["--allow", "pypi.org", "--allow", "github.com:22", "--allow-preset", "npm,pypi"];
    const created = await server.run(["sandbox", "create", "cb_1", ...hosts]);
    expect(created.stdout).toMatch(/^hosts +pypi\.org:443$/m);
    const table = "HOST      PORTS  METHODS  PATHS\npypi.org  443    all      all\n";
    expect((await server.run(["sandbox", "network", "sb_2"])).stdout).toBe(table);
    expect((await server.run(["sandbox", "network", "sb_2", "--allow", "a.org"])).stdout).toContain("a.org");
    expect((await server.run(["sandbox", "network", "sb_2", "--none"])).stdout).toBe("no hosts: it reaches nothing\n");
    expect(asked).toEqual([
      [4, ["pypi.org", "github.com:22"], ["npm", "pypi"]],
      ["sb_2", ["a.org"], []],
      ["sb_2", [], []],
    ]);
    expect((await server.run(["sandbox", "network", "sb_2", "--none", "--allow", "a.org"])).code).toBe(2);
  });

  test("a sandbox is paused and resumed, and one is made that pauses by itself", async () => {
    const server = await scriptedServer({
      sandboxes: {
        pauseSandbox: ({ sandboxId }) => ({ ...SANDBOX, id: sandboxId, status: SandboxStatus.PAUSED }),
        resumeSandbox: ({ sandboxId }) => ({ ...SANDBOX, id: sandboxId }),
        createSandbox: ({ idlePause }) => ({
          ...SANDBOX,
          id: "sb_2",
          status: SandboxStatus.PAUSED,
          statusReason: "idle",
          idlePause,
        }),
        listSandboxes: ({ status }) => ({ sandboxes: [{ ...SANDBOX, id: "sb_3", status }] }),
      },
    });
    expect((await server.run(["sandbox", "pause", "sb_1"])).stdout).toBe("sb_1 is paused\n");
    expect((await server.run(["sandbox", "resume", "sb_1"])).stdout).toBe("sb_1 is running\n");
    const { stdout } = await server.run(["sandbox", "create", "cb_1", "--idle-pause", "10m"]);
    expect(stdout).toMatch(/^status +paused$/m);
    expect(stdout).toMatch(/^reason +idle$/m);
    expect(stdout).toMatch(/^idle pause +600 s$/m);
    expect((await server.run(["sandbox", "list", "--status", "paused"])).stdout).toMatch(/^sb_3 .* paused/m);
  });

  test("--json is what REST would have answered", async () => {
    const server = await scriptedServer({ codebases: { getCodebase: () => CODEBASE } });
    const { code, stdout } = await server.run(["codebase", "show", "--json", "cb_1"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      id: "cb_1",
      name: "bad\u001b[31mname",
      ownerId: "alice",
      size: "2048",
      fileCount: 3,
      version: "7",
      updatedAt: "2026-02-02T02:40:00.000000005Z",
    });
  });

  test("the key travels in the header, from the environment or the option", async () => {
    const server = await scriptedServer({ sandboxes: { destroySandbox: () => ({}) } });
    await server.run(["sandbox", "destroy", "sb_1"], { env: { AGENTFENSE_API_KEY: "af_env" } });
    await server.run(["sandbox", "destroy", "sb_1", "--api-key", "af_option"], {
      env: { AGENTFENSE_API_KEY: "af_env" },
    });
    await server.run(["sandbox", "destroy", "sb_1"]);
    expect(server.authorizations).toEqual(["Bearer af_env", "Bearer af_option", null]);
  });
});

describe("errors are a line, perhaps a hint, and exit code 1", () => {
  test("the server's message with its hint", async () => {
    const server = await scriptedServer({
      sandboxes: {
        getSandbox() {
          throw registryError("SANDBOX_NOT_FOUND", "sandbox not found\u001b[0m", "list them: agentfense sandbox list");
        },
      },
    });
    expect(await server.run(["sandbox", "show", "sb_1"])).toEqual({
      code: 1,
      stdout: "",
      stderr: "agentfense: sandbox not found\\x1b[0m\nhint: list them: agentfense sandbox list\n",
    });
  });

  test("a name where an id belongs says where the ids are", async () => {
    const message = "codebase_id is not of the form cb_ and 16 to 64 hexadecimal digits";
    const server = await scriptedServer({
      codebases: {
        listFiles() {
          throw registryError("INVALID_ARGUMENT", message);
        },
      },
    });
    const { stderr } = await server.run(["codebase", "files", "demo"]);
    expect(stderr).toBe(`agentfense: ${message}\nhint: the ids are in: agentfense codebase list\n`);
  });

  test("a missing key says where to put one", async () => {
    const server = await scriptedServer({
      system: {
        listKeys() {
          throw registryError("UNAUTHENTICATED", "an API key is required");
        },
      },
    });
    const { code, stderr } = await server.run(["key", "list"]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("put a key in AGENTFENSE_API_KEY") });
  });

  test("nothing listens", async () => {
    const { code, stderr } = await agentfense(["codebase", "list", "--endpoint", "127.0.0.1:1"]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        "agentfense: nothing listens at http://127.0.0.1:1\n" +
        "hint: is it running? start one with agentfense serve, or name another with --endpoint\n",
    });
  });

  test("a server that knows less than we do", async () => {
    const server = await scriptedServer({});
    const { code, stderr } = await server.run(["codebase", "versions", "cb_1"]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("cannot do that") });
  });
});

describe("a command given wrongly ends with 2 before anything is sent", () => {
  test("no server is named: whoever listens at the usual port is not asked", async () => {
    const env = { AGENTFENSE_ENDPOINT: "", AGENTFENSE_API_KEY: "af_secret" };
    expect(await agentfense(["codebase", "list"], { env })).toEqual({
      code: 2,
      stdout: "",
      stderr:
        "agentfense: no server is named\n" +
        "hint: name one with --endpoint, as in --endpoint http://127.0.0.1:9000, or in AGENTFENSE_ENDPOINT\n",
    });
  });

  test.each([
    [["sandbox", "show"], "sandbox show takes SANDBOX, not nothing"],
    [["sandbox", "show", "a", "b"], "sandbox show takes SANDBOX, not a b"],
    [["codebase", "files"], "codebase files takes CODEBASE [DIRECTORY], not nothing"],
    [["sandbox", "exec", "sb_1", "ls"], "sandbox exec takes a command after --"],
    [["sandbox", "create", "cb_1", "--network", "all"], "--network is one of none, filtered, private, host"],
    [["sandbox", "create", "cb_1", "--preset", "nope"], "nope"],
    [["sandbox", "create", "cb_1", "--label", "x"], "--label takes NAME=VALUE"],
    [["sandbox", "discard", "sb_1"], "sandbox discard takes paths, or --all"],
    [["codebase", "rollback", "cb_1", "-5"], "Unknown option '-5'"],
    [["codebase", "rollback", "cb_1", "x"], "takes the number of a version"],
    [["codebase", "list", "--endpoint", "ftp://x"], "an endpoint is http://HOST:PORT"],
    [["codebase", "list", "--endpoint", "http://u:p@x:1"], "no user and no password"],
    [["codebase", "list", "--endpoint", "http://x:1", "--ca", "y"], "--ca goes with an https:// endpoint"],
    [["audit", "list", "--since", "yesterday"], "--since takes a time"],
    [["key", "create"], "key create needs --owner"],
    [["key", "create", "--owner", "a", "--role", "king"], "--role is one of admin, user, read-only"],
    [["codebase", "upload", "/nowhere"], "DIR does not exist"],
  ])("%j", async (args, reason) => {
    // The keys of `key` are in a database as long as no server is named.
    const env = args[0] === "key" ? {} : { AGENTFENSE_ENDPOINT: "http://127.0.0.1:1" };
    const { code, stdout, stderr } = await agentfense(args, { env });
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: "", stderr: expect.stringContaining(reason) });
  });
});

test("a key that would travel unencrypted is warned about", async () => {
  const args = ["codebase", "list", "--endpoint", "http://agentfense.invalid:9000"];
  const { stderr } = await agentfense(args, { env: { AGENTFENSE_API_KEY: "af_x" } });
  expect(stderr).toContain("the API key travels unencrypted to agentfense.invalid:9000");
});
