import { once } from "node:events";
import { expect, test } from "vitest";
import { unusedOwner } from "../../src/isolation/backend/box-owner.ts";
import { Launcher } from "../../src/isolation/bwrap/launcher.ts";
import { Container, type ProcessHome } from "../../src/isolation/docker/container.ts";
import { Engine } from "../../src/isolation/docker/engine.ts";
import { findImage } from "../../src/isolation/docker/image.ts";
import { containerPlan } from "../../src/isolation/docker/plan.ts";
import { ContainerProcess } from "../../src/isolation/docker/process.ts";
import { COMMAND_SCRIPT } from "../../src/isolation/docker/scripts.ts";
import { type Arena, describeDocker, finish } from "./arena.ts";

/** A container of which we pretend that its runtime has no subreapers, as old versions of gVisor have none. */
async function openHome(arena: Arena): Promise<ProcessHome> {
  const engine = await Engine.connect(arena.engine.socketPath);
  const policy = { allowPull: false, allowedImages: undefined };
  const image = await findImage(engine, arena.engine.image, policy, { signal: undefined, onProgress: () => {} });
  const [owner, keeper] = [unusedOwner(), unusedOwner()];
  const plan = containerPlan({ instance: arena.name, spec: await arena.spec(), image, owner, keeper });
  const launcher = new Launcher({ perl: "perl", log: () => {} }); // never started: nobody uses a port
  const container = await Container.start({ engine, owner, plan, unknownRuntime: true, launcher, log: () => {} });
  arena.onTidy(() => container.remove());
  expect(container.subreaper).toBe(true); // what this runtime really can
  return {
    engine,
    warden: container.warden,
    subreaper: false,
    startExec: (request, signal) => container.startExec(request, signal),
    restart: () => container.restart(),
    ranOutOfMemory: () => container.ranOutOfMemory(),
    log: () => {},
  };
}

describeDocker("a runtime without subreapers", (arena) => {
  test("ends detached processes with the command that left them, or that is killed", async () => {
    const home = await openHome(arena);
    const bash = (command: string) =>
      ContainerProcess.start(home, {
        script: COMMAND_SCRIPT,
        argv: ["/bin/bash", "-c", command],
        env: {},
        workdir: "/workspace",
        stdin: false,
      });
    const remaining = async () => (await finish(await bash("ps -eo args | grep -c '^sleep 999'"))).stdout;

    expect(await finish(await bash("(setsid sleep 9991 &); echo left; exit 5"))).toEqual({
      exitCode: 5,
      outOfMemory: false,
      stdout: "left\n",
      stderr: "",
    });
    expect(await remaining()).toBe("0\n");

    const run = await bash("trap '' TERM INT; (setsid sleep 9992 &); echo partial; sleep 9993");
    await once(run.stdout, "readable");
    run.kill();
    expect(await finish(run)).toEqual({ exitCode: 137, outOfMemory: false, stdout: "partial\n", stderr: "" });
    expect(await remaining()).toBe("0\n");
  });
});
