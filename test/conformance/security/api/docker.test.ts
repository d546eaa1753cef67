import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EVERYTHING_WRITABLE, exec, makeCodebase, makeSandbox } from "../../../support/belongings.ts";
import { type OwnDockerEngine, reasonAgainstDocker, startDockerEngine } from "../../../support/docker-engine.ts";
import { eventually, HANG_MS, withoutHanging } from "../../../support/eventually.ts";
import { GrpcClient, type Message } from "../../../support/grpc-client.ts";
import { RestClient } from "../../../support/rest-client.ts";
import { TestServer } from "../../../support/server.ts";

const reason = reasonAgainstDocker();
if (reason !== undefined) process.stdout.write(`skipped (docker): requests to the engine: ${reason}\n`);

interface Container {
  readonly Image: string;
  readonly Config: {
    readonly User: string;
    readonly Labels: Readonly<Record<string, string>>;
    readonly Env: readonly string[];
  };
  readonly Mounts: readonly { readonly Type: string; readonly Destination: string }[];
  readonly HostConfig: Message;
}

describe.skipIf(reason !== undefined)("requests and the engine", () => {
  let engine: OwnDockerEngine;
  let server: TestServer;
  let client: GrpcClient;
  let rest: RestClient;
  let codebase_id: string;
  let directory: string;
  let settings: Readonly<Record<string, Readonly<Record<string, unknown>>>>;

  beforeAll(async () => {
    engine = await startDockerEngine();
    await engine.docker("tag", engine.image, "agentfense-other:latest");
    directory = mkdtempSync(join(tmpdir(), "agentfense-docker-server-"));
    settings = {
      runtime: {
        type: "docker",
        types: ["docker"],
        docker: {
          host: `unix://${engine.socketPath}`,
          default_image: engine.image,
          allowed_images: [engine.image, "absent:latest"],
        },
      },
    };
    server = await TestServer.start({ directory, settings });
    client = new GrpcClient(server.grpc);
    rest = new RestClient(server.http);
    codebase_id = await makeCodebase(client, { "a.txt": "a" }, "owner");
  });
  afterAll(async () => {
    client?.[Symbol.dispose]();
    await server?.[Symbol.asyncDispose]();
    await engine?.stop();
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
  });

  async function containers(): Promise<string[]> {
    return (await engine.docker("ps", "-a", "--format", "{{.Names}}")).split("\n").filter((name) => name !== "");
  }

  async function containerOf(sandboxId: string): Promise<Container> {
    const name = (await containers()).find((each) => each.endsWith(sandboxId));
    return (JSON.parse(await engine.docker("inspect", name!)) as Container[])[0]!;
  }

  test("ESC-51 nothing of a request reaches the engine's privileges, mounts, devices or namespaces", async () => {
    const wishes = {
      privileged: true,
      Privileged: true,
      hostConfig: { Privileged: true, Binds: ["/:/host"], PidMode: "host" },
      HostConfig: { Privileged: true, Binds: ["/:/host"], NetworkMode: "host" },
      binds: ["/:/host"],
      mounts: [{ Type: "bind", Source: "/", Target: "/host" }],
      volumes: { "/host": {} },
      devices: [{ PathOnHost: "/dev/mem", PathInContainer: "/dev/mem", CgroupPermissions: "rwm" }],
      capAdd: ["ALL"],
      securityOpt: ["seccomp=unconfined", "apparmor=unconfined"],
      pidMode: "host",
      ipcMode: "host",
      usernsMode: "host",
      networkMode: "host",
      cgroupnsMode: "host",
      cgroupParent: "/",
      user: "root",
      ociRuntime: engine.otherRuntime,
      runtimeOptions: { runtime: engine.otherRuntime },
      entrypoint: ["/bin/sh"],
      workspaces: [{ lowers: ["/"], delta: "/tmp/x" }],
      lower: "/",
    };
    const labels = {
      "agentfense.instance": "stolen",
      "agentfense.sandbox": "stolen",
      privileged: "true",
      "com.docker.compose.project": "x",
      "io.podman.annotations.privileged": "TRUE",
    };
    const env = { DOCKER_HOST: "unix:///var/run/docker.sock", LD_PRELOAD: "/evil.so" };
    const made = await rest.post("/v1/sandboxes", {
      ...wishes,
      codebaseId: codebase_id,
      permissions: EVERYTHING_WRITABLE,
      labels,
      env,
    });
    expect(made.status).toBe(200);
    const sandbox = made.json.id as string;
    expect((await rest.post(`/v1/sandboxes/${sandbox}/start`, wishes)).status).toBe(200);

    const container = await containerOf(sandbox);
    expect(container.HostConfig).toMatchObject({
      Privileged: false,
      CapDrop: ["ALL"],
      ReadonlyRootfs: true,
      NetworkMode: "none",
      PidMode: "",
      IpcMode: "private",
      UTSMode: "",
      UsernsMode: "",
      CgroupnsMode: "private",
      AutoRemove: false,
    });
    const { CapAdd, Devices, Binds, VolumesFrom, DeviceRequests, Links, Runtime, SecurityOpt } = container.HostConfig;
    expect([CapAdd, Devices, Binds, VolumesFrom, DeviceRequests, Links].flatMap((list) => list ?? [])).toEqual([]);
    expect(Runtime).toBe("runc");
    expect((SecurityOpt as string[]).filter((option) => /unconfined|disable/.test(option))).toEqual([]);
    expect(container.Mounts.map(({ Type, Destination }) => [Type, Destination]).toSorted()).toEqual([
      ["bind", "/home/agent"],
      ["bind", "/workspace"],
    ]);
    expect(container.Config.User).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(Object.keys(container.Config.Labels).filter((name) => !name.startsWith("agentfense."))).toEqual([]);
    expect(Object.values(container.Config.Labels)).not.toContain("stolen");
    expect(container.Config.Env.filter((variable) => /DOCKER_HOST|LD_PRELOAD/.test(variable))).toEqual([]);

    const inside = await exec(
      client,
      sandbox,
      "id -u; ls /host /dev/mem 2>&1 | wc -l; grep CapEff /proc/self/status; ls -A /workspace",
      { env: { LD_PRELOAD: "" } },
    );
    expect(inside.stdout).toMatch(/^[1-9]\d*\n2\nCapEff:\t0{16}\na\.txt\n$/);
    await client.call("SandboxService", "DestroySandbox", { sandbox_id: sandbox });
  });

  test("ESC-51 neither another network, nor another runtime, nor limits beyond sense can be asked for", async () => {
    for (const request of [
      { network: "NETWORK_MODE_HOST" },
      { network: "NETWORK_MODE_PRIVATE" },
      { runtime: "RUNTIME_TYPE_BWRAP" },
      { runtime: "RUNTIME_TYPE_MOCK" },
      { network: 17 },
      { runtime: 17 },
      { resources: { cpu_quota: "-1" } },
      { resources: { memory_bytes: "-1" } },
      { resources: { pids_limit: "-1" } },
    ]) {
      const { code } = await client.outcome("SandboxService", "CreateSandbox", [{ codebase_id, ...request }]);
      expect([request, code === 3 || code === 9]).toEqual([request, true]);
    }
    const words = ["--privileged", "--pid=host", "-v/:/host", "/bin/sh; id"];
    const sandbox = await makeSandbox(client, codebase_id);
    for (const word of words) {
      // As arguments of a command they are that.
      const { stdout } = (await client.call("SandboxService", "Exec", {
        sandbox_id: sandbox,
        argv: ["echo", word],
      })) as { stdout: string };
      expect(stdout).toBe(`${word}\n`);
      const run = await client.outcome("SandboxService", "Exec", [{ sandbox_id: sandbox, argv: [word] }]);
      expect([word, run.code === 3 || run.messages[0]?.exit_code === 127]).toEqual([word, true]);
      expect(
        await client.failure("SandboxService", "Exec", { sandbox_id: sandbox, command: "true", workdir: word }),
      ).toMatchObject({ code: 3 });
    }
    expect((await containerOf(sandbox)).HostConfig).toMatchObject({ Privileged: false, PidMode: "" });
    await client.call("SandboxService", "DestroySandbox", { sandbox_id: sandbox });
  });

  test("API-25 an image comes from the list, by a name that is one, and nothing is pulled", async () => {
    const malformed = [
      "-v",
      "--privileged",
      `${engine.image} --privileged`,
      "a b",
      "a\nb",
      "A/B:latest",
      "../../images/json",
      "x?fromImage=y",
      "x#y",
      "x%2f..%2fjson",
      "http://169.254.169.254/latest",
      "/etc/passwd",
      "a".repeat(600),
      "x:tag:tag",
      "x@sha256:short",
      `x@sha256:${"g".repeat(64)}`,
      "x@md5:00",
      "\0",
      "user:password@host/x",
    ];
    for (const image of malformed) {
      expect([
        image.slice(0, 40),
        await client.failure("SandboxService", "CreateSandbox", { codebase_id, image }),
      ]).toMatchObject([image.slice(0, 40), { code: 3 }]);
    }
    const others = [
      "agentfense-other:latest",
      "169.254.169.254/x",
      "169.254.169.254:80/latest/meta-data",
      "localhost:1/x",
      "ubuntu:22.04",
      `${engine.image.split(":")[0]}:other`,
      `agentfense-test@sha256:${"0".repeat(64)}`,
      "absent:latest",
    ];
    for (const image of others) {
      const made = await client.outcome("SandboxService", "CreateSandbox", [{ codebase_id, image }]);
      const sandbox_id = made.messages[0]?.id;
      const start = () =>
        client.outcome("SandboxService", "StartSandbox", [{ sandbox_id }], { deadlineMs: 10 * HANG_MS });
      // Nobody connected anywhere: an address that does not answer takes longer than this.
      const started = made.code === 0 ? await withoutHanging(start) : made;
      expect([image, [3, 9].includes(started.code), started.message]).toEqual([image, true, started.message]);
      if (sandbox_id !== undefined) await client.call("SandboxService", "DestroySandbox", { sandbox_id });
    }
    expect(await containers()).toEqual([]);
    const images = (await engine.docker("images", "--format", "{{.Repository}}:{{.Tag}}"))
      .split("\n")
      .filter((line) => line !== "");
    expect(images.toSorted()).toEqual(["agentfense-other:latest", engine.image].toSorted());
    const named = await makeSandbox(client, codebase_id, { image: engine.image });
    expect((await exec(client, named, "cat a.txt")).stdout).toBe("a");
    await client.call("SandboxService", "DestroySandbox", { sandbox_id: named });
  });

  test("API-35 after a kill the next server removes its containers, and no others", async () => {
    const sandbox = await makeSandbox(client, codebase_id);
    await exec(client, sandbox, "echo kept > changed.txt");
    await engine.docker("run", "-d", "--name", "bystander", "--network", "none", engine.image, "sleep", "600");
    const [before] = (await containers()).filter((name) => name.endsWith(sandbox));
    client[Symbol.dispose]();
    await server.stop("SIGKILL");
    expect(await containers()).toContain(before);
    server = await TestServer.start({ directory, settings });
    client = new GrpcClient(server.grpc);
    rest = new RestClient(server.http);
    await eventually(async () => expect((await rest.get("/readyz")).status).toBe(200));
    const after = await containers();
    expect(after).not.toContain(before);
    expect(after).toContain("bystander");
    expect((await exec(client, sandbox, "cat changed.txt")).stdout).toBe("kept\n");
    await client.call("SandboxService", "DestroySandbox", { sandbox_id: sandbox });
    expect(await containers()).toEqual(["bystander"]);
    await engine.docker("rm", "-f", "bystander");
  });

  test("API-42 an engine that is gone is told without its address", async () => {
    const { id: sandbox_id } = await client.call("SandboxService", "CreateSandbox", { codebase_id });
    const running = await makeSandbox(client, codebase_id);
    await engine.stop();
    const outcomes = [
      await client.outcome("SandboxService", "StartSandbox", [{ sandbox_id }]),
      await client.outcome("SandboxService", "Exec", [{ sandbox_id: running, command: "true" }]),
      await client.outcome("SandboxService", "CreateSession", [{ sandbox_id: running }]),
    ];
    for (const { code, message, trailers } of outcomes) {
      expect(code).not.toBe(0);
      const text = message + Buffer.from(trailers["grpc-status-details-bin"] ?? "").toString("latin1");
      expect(text).not.toMatch(/\/tmp|\/run\/|socket|ENOENT|ECONN|agentfense-docker|node:|at .*\(/);
    }
    const { status_reason } = await client.call("SandboxService", "GetSandbox", { sandbox_id });
    expect(status_reason).not.toMatch(/\/tmp|\/run\/|socket|ENOENT|ECONN/);
  });
});
