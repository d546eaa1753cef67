import { Socket } from "node:net";
import { expect, test } from "vitest";
import { unusedOwner } from "../../../src/isolation/backend/box-owner.ts";
import { DescriptorRoom } from "../../../src/isolation/backend/descriptor-room.ts";
import { IsolationError } from "../../../src/isolation/backend/isolation-error.ts";
import { Launcher } from "../../../src/isolation/bwrap/launcher.ts";
import { Container } from "../../../src/isolation/docker/container.ts";
import { DockerDaemon } from "../../../src/isolation/docker/daemon.ts";
import { describeDocker } from "./arena.ts";

describeDocker("what the engine says", (arena) => {
  test("is in no message: neither its own words, nor paths of the host, nor names of containers", async () => {
    const daemon = await DockerDaemon.connect(arena.engine.socketPath);
    const requests = [
      () => daemon.get("/containers/no-such-thing/json"),
      () => daemon.hijack("/exec/no-such-thing/start", { body: { Detach: false } }),
      () => DockerDaemon.connect("/nonexistent/socket"),
    ];
    for (const request of requests) {
      const error = await request().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (!(error instanceof IsolationError)) throw new Error("only an IsolationError is safe to pass on");
      expect(`${error.message} ${error.hint}`).not.toMatch(/no-such-thing|nonexistent|socket|HTTP/);
      expect(String(error.cause)).toMatch(/no-such-thing|No such|nonexistent/);
    }
  });

  test("about a box that cannot start becomes advice", async () => {
    const backend = await arena.backend();
    const missing = await backend.createBox(
      await arena.spec({ mounts: [{ source: "/nonexistent/mount", target: "/workspace" }] }),
    );
    const failure = { code: "RUNTIME_UNAVAILABLE", message: "the engine cannot see the sandbox's workspace" };
    await expect(missing.start()).rejects.toMatchObject(failure);
    const tiny = await backend.createBox(await arena.spec({ limits: { memoryBytes: 1024 } }));
    await expect(tiny.start()).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: "the memory limit is too small for a container",
    });
  });

  test("about a box whose container vanished is that it does not run", async () => {
    const box = await arena.box();
    await arena.engine.docker("rm", "-f", await arena.container());
    const command = { argv: ["/bin/true"] as [string], env: {}, workdir: "/", stdin: false };
    await expect(box.run(command)).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
    await expect(box.usage()).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
    await expect(box.shells()).resolves.toContain("/bin/sh");
    await box.destroy();
  });
});

test("a runtime without subreapers, as old versions of gVisor are, is refused, and its container removed", async () => {
  const asked: string[] = [];
  const answers = (method: string) => async (path: string) => {
    asked.push(`${method} ${path}`);
    if (path.endsWith("/wait")) await new Promise(() => {});
    return { Id: "id", ExitCode: 1, Running: false };
  };
  const daemon = {
    get: answers("GET"),
    post: answers("POST"),
    delete: answers("DELETE"),
    hijack: async () => {
      const connection = new Socket();
      setImmediate(() => connection.destroy());
      return connection;
    },
  };
  const starting = Container.start({
    daemon: daemon as unknown as DockerDaemon,
    owner: unusedOwner(),
    plan: { name: "name", config: {}, pidsLimit: undefined },
    awake: (work) => work(),
    unknownRuntime: true,
    launcher: new Launcher({ perl: "perl", log: () => {} }),
    leftoverRoom: new DescriptorRoom(1),
    log: () => {},
  });
  await expect(starting).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE", hint: expect.stringContaining("runc") });
  expect(asked.at(-1)).toBe("DELETE /containers/id");
});
