import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { withoutHanging } from "../../../../../test/support/eventually.ts";
import { loadConfiguration } from "../../../src/service/configuration/load.ts";
import { load, problemsOf } from "./configuration.ts";

describe("a mistake is named with its place and what is expected", () => {
  test.each([
    [
      "an unknown key",
      "server:\n  grpc_adr: x\n",
      "server.yaml:2: unknown key server.grpc_adr; did you mean grpc_addr?",
    ],
    ["an unknown section", "logging:\nlimts:\n  a: 1\n", "server.yaml:2: unknown key limts; did you mean limits?"],
    ["nothing near", "server:\n  colour: red\n", "server.yaml:2: unknown key server.colour"],
    ["a key that JavaScript knows", "__proto__:\n  x: 1\n", "server.yaml:1: unknown key __proto__"],
    ["a key that is no name", "server:\n  9000: x\n", "server.yaml:2: unknown key server.9000"],
    [
      "a number where a duration is due",
      "runtime:\n\n  default_timeout: 30\n",
      "server.yaml:3: runtime.default_timeout: expected a duration such as 30s, 10m, 1h30m, 7d or 0, not 30",
    ],
    [
      "a text where a switch is due",
      "sandbox:\n  sync_on_completion: sometimes\n",
      'server.yaml:2: sandbox.sync_on_completion: expected true or false, not "sometimes"',
    ],
    [
      "a wrong word",
      "logging:\n  level: loud\n",
      'server.yaml:2: logging.level: expected one of debug, info, warn, error, fatal, not "loud"',
    ],
    [
      "a wrong word in a list",
      "runtime:\n  networks: [none, all]\n",
      'server.yaml:2: runtime.networks: expected a list of one or more of none, filtered, private, host, not ["none","all"]',
    ],
    [
      "an address among hosts",
      "runtime:\n  network_allow: [pypi.org, 10.0.0.1]\n",
      "server.yaml:2: runtime.network_allow: expected a list of hosts such as example.com, *.example.com or example.com:443, " +
        'not ["pypi.org","10.0.0.1"]',
    ],
    [
      "a section where a value is due",
      "server:\n  grpc_addr:\n    port: 1\n",
      'server.yaml:3: server.grpc_addr: expected an address such as 127.0.0.1:9000, [::1]:9000, :9000 or unix:/run/agentfense.sock, not {"port":1}',
    ],
    ["a value where a section is due", "logging: 3\n", "server.yaml:1: logging: expected a section with keys, not 3"],
    [
      "no value",
      "audit:\n  retention:\n",
      "server.yaml:2: audit.retention: has no value; expected a duration such as 30s, 10m, 1h30m, 7d or 0",
    ],
    [
      "a control character",
      'runtime:\n  bwrap_path: "a\\nb"\n',
      'server.yaml:2: runtime.bwrap_path: expected a text, not "a\\nb"',
    ],
    [
      "an unknown key of a template",
      "e2b:\n  templates:\n    mine: { prest: agent-safe }\n",
      "server.yaml:3: e2b.templates: unknown key mine.prest; did you mean preset?",
    ],
    [
      "a preset that there is not",
      "e2b: { templates: { mine: { preset: agent-save } } }\n",
      expect.stringMatching(/^server\.yaml:1: e2b\.templates: mine\.preset: .*agent-save/),
    ],
    [
      "a rule of a template",
      'e2b: { templates: { mine: { permissions: [{ pattern: "**", permission: "maybe" }] } } }\n',
      'server.yaml:1: e2b.templates: mine.permissions: rule 0 ("**"): permission must be one of none, view, read, write',
    ],
    [
      "a resource of a template",
      "e2b: { templates: { mine: { resources: { memory_bytes: lots } } } }\n",
      'server.yaml:1: e2b.templates: mine.resources.memory_bytes: expected a size such as 512MiB, 10GB or a number of bytes, not "lots"',
    ],
    [
      "a network that the server does not have",
      "e2b: { templates: { mine: { network: { allow: [pypi.org] } } } }\n",
      "e2b.templates.mine.network is filtered, which runtime.networks does not have",
    ],
    ["a key twice", "server: {}\nlogging: {}\nserver: {}\n", "server.yaml:3: Map keys must be unique"],
    ["a tag", "server: !secret {}\n", "server.yaml:1: Unresolved tag: !secret"],
  ])("%s", async (_title, yaml, problem) => {
    expect(await problemsOf({ yaml })).toEqual([problem]);
  });

  test("all of them at once", async () => {
    const problems = await problemsOf({
      yaml: "server:\n  grpc_adr: x\nlogging:\n  level: 1\n",
      env: { AGENTFENSE_RUNTIME_TYPE: "vmware" },
      flags: [{ flag: "--set storage.dbpath", name: "storage.dbpath", value: "x" }],
    });
    expect(problems).toEqual([
      "server.yaml:2: unknown key server.grpc_adr; did you mean grpc_addr?",
      "--set storage.dbpath: unknown key storage.dbpath; did you mean storage.db_path?",
      'AGENTFENSE_RUNTIME_TYPE: runtime.type: expected one of bwrap, docker, mock, not "vmware"',
      "server.yaml:4: logging.level: expected one of debug, info, warn, error, fatal, not 1",
    ]);
  });

  test("a file that is not there, or not a file", async () => {
    await expect(loadConfiguration({ file: "/nowhere.yaml", env: {}, flags: [] })).rejects.toThrow(
      /cannot read.*ENOENT/,
    );
    await expect(loadConfiguration({ file: "/dev/zero", env: {}, flags: [] })).rejects.toThrow("is not a file");
  });
});

describe("the environment", () => {
  test("a variable of a section that names no key is a mistake", async () => {
    expect(await problemsOf({ env: { AGENTFENSE_SERVER_GRPC_ADR: "x" } })).toEqual([
      "environment: unknown setting AGENTFENSE_SERVER_GRPC_ADR; did you mean AGENTFENSE_SERVER_GRPC_ADDR?",
    ]);
  });

  test("variables of clients and tests are not ours", async () => {
    const env = { AGENTFENSE_ENDPOINT: "x", AGENTFENSE_API_KEY: "y", AGENTFENSE_ROUNDS: "3", AGENTFENSE_CONFIG: "z" };
    expect((await load({ env })).config).toEqual((await load({})).config);
  });
});

describe("aliases", () => {
  test("a value may be written once and used twice", async () => {
    const yaml = "runtime:\n  default_timeout: &time 1m\n  max_timeout: *time\n";
    const { config } = await load({ yaml });
    expect([config.runtime.default_timeout, config.runtime.max_timeout]).toEqual([60_000, 60_000]);
  });

  test("a bomb of them is refused unopened", async () => {
    const levels = Array.from({ length: 12 }, (_, at) => {
      const items = Array(10).fill(at === 0 ? "x" : `*l${at - 1}`);
      return `&l${at} [${items.join(", ")}]`;
    });
    const yaml = `server:\n  allowed_hosts: [${levels.join(", ")}]\n`;
    expect(await withoutHanging(() => problemsOf({ yaml }))).toHaveLength(1);
  });

  test("one that contains itself is refused", async () => {
    expect(await problemsOf({ yaml: "server: &s\n  tls: *s\n" })).not.toEqual([]);
  });
});

describe("values that contradict each other", () => {
  test.each([
    [{ AGENTFENSE_SERVER_TLS_CERT_FILE: "/a" }, "server.tls.cert_file and server.tls.key_file go together"],
    [{ AGENTFENSE_SERVER_TLS_CLIENT_CA_FILE: "/a" }, "server.tls.client_ca_file needs"],
    [{ AGENTFENSE_RUNTIME_TYPES: "docker" }, "runtime.type is bwrap, which runtime.types does not have"],
    [
      { AGENTFENSE_RUNTIME_FALLBACK: "docker", AGENTFENSE_RUNTIME_TYPES: "bwrap" },
      "runtime.fallback is docker, which runtime.types does not have",
    ],
    [{ AGENTFENSE_RUNTIME_DEFAULT_TIMEOUT: "1h" }, "runtime.default_timeout is more than runtime.max_timeout"],
    [{ AGENTFENSE_RUNTIME_DEFAULT_TIMEOUT: "0" }, "must be more than 0"],
    [{ AGENTFENSE_SANDBOX_CLEANUP_INTERVAL: "0" }, "must be more than 0"],
    [{ AGENTFENSE_LIMITS_MAX_MESSAGE_SIZE: "1k" }, "64KiB or more"],
    [{ AGENTFENSE_LIMITS_REQUEST_BURST: "0" }, "limits.request_burst must be 1 or more"],
    [{ AGENTFENSE_SERVER_ALLOWED_ORIGINS: "example.org" }, "expected origins such as"],
  ])("%j", async (env, problem) => {
    expect(await problemsOf({ env })).toEqual([expect.stringContaining(problem)]);
  });
});

test("a file larger than any configuration is not read", async () => {
  const directory = await mkdtemp(join(tmpdir(), "agentfense-configuration-"));
  const file = join(directory, "large.yaml");
  await writeFile(file, `# ${"x".repeat(1_100_000)}\n`);
  await expect(loadConfiguration({ file, env: {}, flags: [] })).rejects.toThrow("larger than a configuration can be");
  await rm(directory, { recursive: true });
});
