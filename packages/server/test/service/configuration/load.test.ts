import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { load, problemsOf } from "./configuration.ts";

describe("what counts", () => {
  test("flags win over the environment, the environment over the file, the file over the defaults", async () => {
    const yaml = "server:\n  grpc_addr: 127.0.0.1:1\n  http_addr: 127.0.0.1:2\nlogging:\n  level: warn\n";
    const env = { AGENTFENSE_SERVER_GRPC_ADDR: "127.0.0.1:3", AGENTFENSE_SERVER_HTTP_ADDR: "127.0.0.1:4" };
    const flags = [{ flag: "--grpc-addr", name: "server.grpc_addr", value: "127.0.0.1:5" }];
    const { config, origins } = await load({ yaml, env, flags });
    expect([config.server.grpc_addr, origins["server.grpc_addr"]]).toEqual(["127.0.0.1:5", "flag --grpc-addr"]);
    expect([config.server.http_addr, origins["server.http_addr"]]).toEqual([
      "127.0.0.1:4",
      "environment AGENTFENSE_SERVER_HTTP_ADDR",
    ]);
    expect([config.logging.level, origins["logging.level"]]).toEqual(["warn", "file server.yaml:5"]);
    expect([config.logging.format, origins["logging.format"]]).toEqual(["text", "default"]);
  });

  test("the file of the earlier server works, with its keys and their meaning", async () => {
    const { config } = await load({
      yaml: `
server:
  grpc_addr: ":9000"
  http_addr: ":8080"
storage:
  codebase_path: "/srv/codebases"
  mount_path: "/srv/mounts"
  db_path: "/srv/metadata.db"
runtime:
  type: "bwrap"
  bwrap_path: "/usr/bin/bwrap"
  default_timeout: "30s"
  max_timeout: "10m"
  docker:
    host: ""
    default_image: "ubuntu:22.04"
    network_mode: "none"
    enable_networking: false
sandbox:
  default_expiration: "24h"
  max_per_user: 10
  cleanup_interval: "5m"
logging:
  level: "info"
  format: "json"
`,
    });
    expect(config).toMatchObject({
      server: { grpc_addr: ":9000", http_addr: ":8080" },
      storage: { codebase_path: "/srv/codebases", mount_path: "/srv/mounts", db_path: "/srv/metadata.db" },
      runtime: { type: "bwrap", types: ["bwrap"], default_timeout: 30_000, max_timeout: 600_000 },
      sandbox: { default_expiration: 86_400_000, max_per_user: 10, cleanup_interval: 300_000 },
      logging: { level: "info", format: "json" },
    });
  });

  test("a relative path of the file starts at the file's directory, one of a flag where the server was started", async () => {
    const yaml = [
      "server: { tls: { cert_file: tls/cert.pem, key_file: /etc/key.pem } }",
      "storage: { db_path: ../metadata.db }",
      "",
    ].join("\n");
    const flags = [{ flag: "--mount-path", name: "storage.mount_path", value: "mounts" }];
    const { config, directory } = await load({ yaml, flags });
    expect(config.server.tls).toEqual({
      cert_file: join(directory, "tls/cert.pem"),
      key_file: "/etc/key.pem",
      client_ca_file: "",
    });
    expect([config.storage.db_path, config.storage.mount_path]).toEqual([join(directory, "../metadata.db"), "mounts"]);
  });

  test("lists, switches, times and sizes are read from the environment as from the file", async () => {
    const { config } = await load({
      env: {
        AGENTFENSE_RUNTIME_TYPES: "bwrap, docker",
        AGENTFENSE_SERVER_ALLOWED_HOSTS: "",
        AGENTFENSE_SANDBOX_SYNC_ON_COMPLETION: "false",
        AGENTFENSE_RUNTIME_MAX_TIMEOUT: "1h",
        AGENTFENSE_LIMITS_MAX_BODY_SIZE: "1MiB",
        AGENTFENSE_SANDBOX_MAX_PER_USER: "50",
        AGENTFENSE_RUNTIME_DOCKER_ALLOW_PULL: "true",
      },
    });
    expect(config.runtime).toMatchObject({ types: ["bwrap", "docker"], max_timeout: 3_600_000 });
    expect(config.runtime.docker.allow_pull).toBe(true);
    expect(config.server.allowed_hosts).toEqual([]);
    expect(config.limits.max_body_size).toBe(1_048_576);
    expect(config.sandbox).toMatchObject({ sync_on_completion: false, max_per_user: 50 });
  });

  test("sections may be empty, and so may the file", async () => {
    const { config } = await load({ yaml: "server:\nruntime:\n  docker:\n" });
    expect(config).toEqual((await load({ yaml: "# nothing\n" })).config);
    expect(config).toEqual((await load({})).config);
  });
});

describe("who needs a key", () => {
  test.each([
    ["this machine only", "127.0.0.1:9000", "127.0.0.1:8080", "off"],
    ["this machine by another name", "localhost:9000", "[::1]:8080", "off"],
    ["no REST", "127.0.0.1:9000", "", "off"],
    ["every interface", ":9000", "127.0.0.1:8080", "required"],
    ["REST on every interface", "127.0.0.1:9000", "0.0.0.0:8080", "required"],
    ["a name that could be any address", "agents.example.org:9000", "", "required"],
  ])("%s", async (_title, grpc, http, keys) => {
    const env = { AGENTFENSE_SERVER_GRPC_ADDR: grpc, AGENTFENSE_SERVER_HTTP_ADDR: http };
    expect((await load({ env })).config.auth.keys).toBe(keys);
  });

  test("an open port without keys is refused unless somebody insists", async () => {
    const open = { AGENTFENSE_SERVER_GRPC_ADDR: ":9000", AGENTFENSE_AUTH_KEYS: "off" };
    expect(await problemsOf({ env: open })).toEqual([expect.stringContaining("server.grpc_addr (:9000) is open")]);
    const { config } = await load({ env: { ...open, AGENTFENSE_SERVER_ALLOW_OPEN: "true" } });
    expect(config.auth.keys).toBe("off");
    const insisted = await load({
      env: { AGENTFENSE_SERVER_GRPC_ADDR: ":9000", AGENTFENSE_SERVER_ALLOW_OPEN: "true" },
    });
    expect(insisted.config.auth.keys).toBe("off");
  });
});

describe("how much is kept", () => {
  test("a thousand versions and 10 GiB of what they replaced, unless somebody says otherwise", async () => {
    const { config } = await load({});
    expect(config.storage).toMatchObject({ keep_versions: 1000, keep_bytes: 10 * 1024 ** 3 });
    expect(config.limits.max_upload_size).toBe(10 * 1024 ** 3);
    const yaml = "storage:\n  keep_versions: 20\nlimits:\n  max_upload_size: 1GiB\n";
    const changed = (await load({ yaml, env: { AGENTFENSE_STORAGE_KEEP_BYTES: "512MiB" } })).config;
    expect(changed.storage).toMatchObject({ keep_versions: 20, keep_bytes: 512 * 1024 ** 2 });
    expect(changed.limits.max_upload_size).toBe(1024 ** 3);
    const endless = (await load({ yaml: "storage:\n  keep_versions: 0\n  keep_bytes: 0\n" })).config;
    expect(endless.storage).toMatchObject({ keep_versions: 0, keep_bytes: 0 });
  });

  test.each([
    "keep_versions: -1",
    "keep_versions: 1.5",
    "keep_versions: many",
    "keep_bytes: -1",
    "keep_bytes: 10 apples",
  ])("%s is refused", async (line) => {
    const key = line.slice(0, line.indexOf(":"));
    expect(await problemsOf({ yaml: `storage:\n  ${line}\n` })).toEqual([expect.stringContaining(`storage.${key}`)]);
  });
});

describe("where things are kept", () => {
  test("root's are below /var/lib, a user's in the XDG state directory", async () => {
    const { storage } = (await load({ env: { XDG_STATE_HOME: "/home/alice/state" } })).config;
    const top = process.geteuid?.() === 0 ? "/var/lib/agentfense" : "/home/alice/state/agentfense";
    expect(storage).toMatchObject({
      codebase_path: `${top}/codebases`,
      mount_path: `${top}/mounts`,
      db_path: `${top}/metadata.db`,
    });
  });
});
