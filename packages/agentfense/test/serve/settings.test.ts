import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { withTwoDashes } from "../../src/serve/options.ts";
import { agentfense, scratch } from "../run-cli.ts";

async function fileWith(yaml: string): Promise<string> {
  const file = join(await scratch(), "server.yaml");
  await writeFile(file, yaml);
  return file;
}

describe("config print", () => {
  test("shows each value and its origin", async () => {
    const file = await fileWith("logging:\n  format: json\nruntime:\n  max_timeout: 90m\n");
    const args = ["config", "print", "-config", file, "-grpc-addr", "127.0.0.1:1", "--set", "server.http_addr="];
    const { code, stdout, stderr } = await agentfense(args, { env: { AGENTFENSE_LOGGING_LEVEL: "debug" } });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const rows = new Map(stdout.split("\n").map((line) => [line.split(/ +/)[0], line.replace(/ +/g, " ")]));
    expect(
      [
        "server.grpc_addr",
        "server.http_addr",
        "runtime.max_timeout",
        "logging.level",
        "logging.format",
        "auth.keys",
      ].map((name) => rows.get(name)),
    ).toEqual([
      "server.grpc_addr 127.0.0.1:1 flag --grpc-addr",
      'server.http_addr "" flag --set server.http_addr',
      "runtime.max_timeout 1h30m file server.yaml:4",
      "logging.level debug environment AGENTFENSE_LOGGING_LEVEL",
      "logging.format json file server.yaml:2",
      "auth.keys off default",
    ]);
  });

  test("--json has the descriptions and the variables too", async () => {
    const { stdout } = await agentfense(["config", "print", "--json"]);
    const settings = JSON.parse(stdout) as { name: string }[];
    expect(settings.find(({ name }) => name === "runtime.default_timeout")).toEqual({
      name: "runtime.default_timeout",
      value: "30s",
      origin: "default",
      description: expect.any(String),
      variable: "AGENTFENSE_RUNTIME_DEFAULT_TIMEOUT",
      default: "30s",
    });
  });

  test.each([["serve"], ["config print"]])(
    "%s ends with 2 for a mistake in the file, and names it",
    async (command) => {
      const file = await fileWith("server:\n  grpc_adr: 1\n");
      expect(await agentfense([...command.split(" "), "--config", file])).toEqual({
        code: 2,
        stdout: "",
        stderr: `agentfense: server.yaml:2: unknown key server.grpc_adr; did you mean grpc_addr?\nhint: agentfense ${command} --help\n`,
      });
    },
  );

  test("the file may come from AGENTFENSE_CONFIG", async () => {
    const file = await fileWith("logging:\n  level: warn\n");
    const { stdout } = await agentfense(["config", "print"], { env: { AGENTFENSE_CONFIG: file } });
    expect(stdout).toMatch(/^logging\.level +warn +file server\.yaml:2$/m);
  });
});

test("the options of the earlier server keep their one dash, and only those", () => {
  expect(withTwoDashes(["-config", "f", "-grpc-addr=:1", "-runtime", "mock", "-h", "-x", "--config"])).toEqual([
    "--config",
    "f",
    "--grpc-addr=:1",
    "--runtime",
    "mock",
    "-h",
    "-x",
    "--config",
  ]);
});

describe("keys on the database itself", () => {
  test("are made, listed and revoked without a server", async () => {
    const set = ["--set", `storage.db_path=${join(await scratch(), "metadata.db")}`];
    const created = await agentfense(["key", "create", "--owner", "alice", "--name", "laptop", ...set]);
    expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^af_\S+\n$/) });
    const [key] = JSON.parse((await agentfense(["key", "list", "--json", ...set])).stdout) as { id: string }[];
    expect(key).toMatchObject({ ownerId: "alice", role: "user", name: "laptop", revokedAt: "" });
    expect(created.stdout).toContain(key!.id);
    expect(await agentfense(["key", "revoke", key!.id, ...set])).toMatchObject({
      code: 0,
      stdout: `revoked ${key!.id}\n`,
    });
    const [revoked] = JSON.parse((await agentfense(["key", "list", "--json", ...set])).stdout) as {
      revokedAt: string;
    }[];
    expect(revoked!.revokedAt).not.toBe("");
    expect(await agentfense(["key", "revoke", "key_nobody", ...set])).toMatchObject({
      code: 1,
      stderr: "agentfense: there is no such API key\n",
    });
  });

  test("audit verify wants a database that is there, and finds a new log whole", async () => {
    const set = ["--set", `storage.db_path=${join(await scratch(), "metadata.db")}`];
    expect(await agentfense(["audit", "verify", ...set])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("cannot be used: ENOENT"),
    });
    await agentfense(["key", "list", ...set]);
    expect(await agentfense(["audit", "verify", ...set])).toMatchObject({
      code: 0,
      stdout: "the audit log is whole: 0 event(s)\n",
    });
  });
});
