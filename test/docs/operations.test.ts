import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { loadConfiguration } from "@agentfense/server/configuration";
import { describe, expect, onTestFinished, test } from "vitest";
import { REPOSITORY } from "../../scripts/docs/source.ts";
import { type DockerEngine, reasonAgainstDocker, startDockerEngine } from "../support/docker-engine.ts";
import { eventually } from "../support/eventually.ts";
import { CLI, TestServer } from "../support/server.ts";

// What docs/operations.md and docs/e2b.md show: e2b.yaml, agentfense.service, agentfense.yaml, postgresql.yaml, container.sh and the entry point of Dockerfile.

const place = join(REPOSITORY, "examples/operations");
const INSTALLED = "/usr/local/bin/agentfense";

function read(name: string): string {
  return readFileSync(join(place, name), "utf8");
}

function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-operations-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

test("agentfense.yaml has settings that the server takes", async () => {
  const { config } = await loadConfiguration({ file: join(place, "agentfense.yaml"), env: {}, flags: [] });
  expect(config.runtime).toMatchObject({ type: "bwrap", types: ["bwrap", "docker"] });
});

test("postgresql.yaml has settings that the server takes", async () => {
  const { config } = await loadConfiguration({ file: join(place, "postgresql.yaml"), env: {}, flags: [] });
  expect(config.storage.database).toBe("postgres://agentfense@db.example.org/agentfense");
});

test("e2b.yaml has templates that the server takes", async () => {
  const { config } = await loadConfiguration({ file: join(place, "e2b.yaml"), env: {}, flags: [] });
  expect(Object.keys(config.e2b.templates)).toEqual(["my-repo", "docs"]);
  expect(config.e2b.templates["my-repo"]).toMatchObject({ preset: "agent-safe", resources: { memory_bytes: 2 ** 31 } });
});

test("every metric that the page names is one that a server has", async () => {
  await using server = await TestServer.start();
  const metrics = await (await fetch(`${server.http}/metrics`)).text();
  const page = readFileSync(join(REPOSITORY, "docs/operations.md"), "utf8");
  const named = new Set(page.match(/agentfense_\w+/g));
  expect(named.size).toBeGreaterThan(5);
  expect([...named].filter((name) => !metrics.includes(`# HELP ${name} `))).toEqual([]);
});

const analyze = "/usr/bin/systemd-analyze";
const unanalyzed = existsSync(analyze) ? "" : " (skipped: systemd-analyze is not installed)";

describe.skipIf(unanalyzed !== "")(`agentfense.service${unanalyzed}`, () => {
  test("is a unit that systemd accepts", () => {
    expect(read("agentfense.service")).toContain(`ExecStart=${INSTALLED} serve --config `);
    // A unit is only accepted when its program is there.
    const unit = join(scratch(), "agentfense.service");
    writeFileSync(unit, read("agentfense.service").replace(INSTALLED, CLI));
    const answer = execFileSync(analyze, ["verify", unit], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    expect(answer).toBe("");
  });
});

const reason = reasonAgainstDocker();

describe.skipIf(reason !== undefined)(`the container${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  test("a server with the privileges of container.sh and the entry point of Dockerfile runs a sandbox", async () => {
    await using engine = await startDockerEngine();
    const bin = scratch();
    await makeImage(engine, bin);
    const created = await bash(join(place, "container.sh"), bin);
    expect(created).toMatch(/^af_key_\S+$/m);
    const [key] = created.match(/^af_key_\S+$/m) ?? [];
    const env = ["--env", `AGENTFENSE_API_KEY=${key}`, "--env", "AGENTFENSE_ENDPOINT=http://127.0.0.1:9000"];
    const inside = (command: string) => engine.docker("exec", ...env, "agentfense", "bash", "-euc", command);
    const answers = () =>
      inside("agentfense codebase list").then(
        () => true,
        () => false,
      );
    await eventually(async () => expect(await answers()).toBe(true));
    const codebase = JSON.parse(await inside("agentfense codebase create demo --json")) as { id: string };
    const made = await inside(`agentfense sandbox create ${codebase.id} --preset full-access --json`);
    const { id } = JSON.parse(made) as { id: string };
    await inside(`agentfense sandbox start ${id}`);
    expect(await inside(`agentfense sandbox exec ${id} -- 'id -un; echo kept > file'`)).toContain("agent\n");
    expect(await inside(`agentfense codebase files ${codebase.id}`)).toContain("file");
  });
});

/**
 * An image `agentfense` with the entry point of the Dockerfile. Its programs are this machine's: there is no network to
 * install them from, so the RUN lines are what this does not prove.
 */
async function makeImage(engine: DockerEngine, bin: string): Promise<void> {
  const [, entryPoint] = read("Dockerfile").match(/^ENTRYPOINT (\[.*\])$/m) ?? [];
  expect(entryPoint).toBeDefined();
  const mounts = ["/usr:/usr:ro", "/etc/alternatives:/etc/alternatives:ro", `${REPOSITORY}:${REPOSITORY}:ro`];
  const path = `${join(REPOSITORY, "node_modules/.bin")}:/usr/sbin:/usr/bin:/sbin:/bin`;
  const { NODE_COMPILE_CACHE } = process.env;
  const compiled = NODE_COMPILE_CACHE === undefined ? [] : [`ENV NODE_COMPILE_CACHE=${NODE_COMPILE_CACHE}`];
  const change = [`ENV PATH=${path}`, ...compiled, `ENTRYPOINT ${entryPoint}`].flatMap((line) => ["--change", line]);
  const container = (await engine.docker("create", engine.image, "true")).trim();
  await engine.docker("commit", ...change, container, "agentfense");
  await engine.docker("rm", container);
  const options = mounts.map((mount) => `--volume ${mount}`).join(" ");
  const script = `#!/bin/bash
if [ "$1" = run ]; then shift; set -- run ${options} "$@"; fi
exec /usr/bin/docker -H unix://${engine.socketPath} "$@"
`;
  writeFileSync(join(bin, "docker"), script, { mode: 0o755 });
}

/** What a script prints, with `bin` first on its PATH. */
async function bash(script: string, bin: string): Promise<string> {
  const env = { PATH: `${bin}:${process.env.PATH ?? ""}`, HOME: process.env.HOME ?? "/" };
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", script], { env, timeout: 60_000 });
  return stdout;
}
