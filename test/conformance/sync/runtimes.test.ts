import { describe, expect, test } from "vitest";
import { reasonAgainstDocker } from "../../support/docker-engine.ts";
import { dockerOfRun } from "../../support/docker-of-run.ts";
import { failureOf } from "../../support/grpc-client.ts";
import { serveProjects } from "../../support/project.ts";

// Whatever runs the commands: what they write is in a delta first.

const withoutDocker = reasonAgainstDocker();
if (withoutDocker !== undefined)
  process.stdout.write(`skipped (docker): every runtime has a delta: ${withoutDocker}\n`);

const ground = serveProjects(async () => {
  if (withoutDocker !== undefined) return { settings: { runtime: { types: ["bwrap", "mock"] } } };
  const engine = await dockerOfRun();
  const docker = { host: `unix://${engine.socketPath}`, default_image: engine.image };
  return { settings: { runtime: { types: ["bwrap", "docker", "mock"], docker } } };
});

const FILES = { "a.txt": "a\n", "d/x": "x\n", "ro.txt": "ro\n" };
const BEFORE = { ...FILES, d: "/" };

describe.for(["BWRAP", "DOCKER"])("%s", (name) => {
  test.skipIf(name === "DOCKER" && withoutDocker !== undefined)(
    "SYNC-23 writes to a delta, and a sync is what writes to the codebase",
    async () => {
      const project = await ground.project(FILES);
      const runtime = `RUNTIME_TYPE_${name}`;
      const levels = { "/ro.txt": "read" } as const;
      const command = "echo changed >a.txt; echo new >new.txt; rm -r d; echo x >ro.txt; rm -f ro.txt";
      const never = await project.sandbox(levels, { runtime, sync: "SYNC_MODE_NEVER" });
      await project.run(never, command);
      expect(await project.state()).toEqual(BEFORE);
      const manual = await project.sandbox(levels, { runtime, sync: "SYNC_MODE_MANUAL" });
      await project.run(manual, command);
      expect(await project.state()).toEqual(BEFORE);
      expect(await project.changes(manual)).toEqual([
        "modified /a.txt",
        "deleted /d",
        "deleted /d/x",
        "added /new.txt",
      ]);
      // What is destroyed without a sync never was.
      await project.destroy(never);
      expect(await project.state()).toEqual(BEFORE);
      await project.apply(manual);
      const after = { "a.txt": "changed\n", "new.txt": "new\n", "ro.txt": "ro\n" };
      expect(await project.state()).toEqual(after);
      const syncing = await project.sandbox(levels, { runtime });
      const { synced_version } = await project.run(syncing, "echo more >>new.txt; echo x >>ro.txt");
      expect(await project.state()).toEqual({ ...after, "new.txt": "new\nmore\n" });
      expect((await project.version(Number(synced_version))).sandbox_id).toBe(syncing);
    },
  );
});

test("SYNC-23 a runtime that runs nothing writes nothing, by no call", async () => {
  const project = await ground.project(FILES);
  const sandbox_id = await project.sandbox({}, { runtime: "RUNTIME_TYPE_MOCK" });
  await project.run(sandbox_id, "echo changed >a.txt; rm -rf *");
  const content = [{ metadata: { sandbox_id, path: "a.txt" } }, { data: Buffer.from("changed") }];
  expect((await failureOf(project.grpc.send("SandboxService", "WriteFile", content))).code).toBe(9);
  expect((await project.grpc.failure("SandboxService", "RemoveFile", { sandbox_id, path: "a.txt" })).code).toBe(9);
  expect((await project.apply(sandbox_id)).version).toBe(0);
  await project.stop(sandbox_id);
  expect(await project.state()).toEqual(BEFORE);
});
