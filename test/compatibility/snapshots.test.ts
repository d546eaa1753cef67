import { beforeAll, describe, expect, test } from "vitest";
import { serveApi, testsCover } from "../support/api.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();
let codebase: string;
beforeAll(async () => {
  codebase = await api.codebase({ "a.txt": "alpha\n" });
});

describe("snapshots and forks", () => {
  test("are made, listed, gone back to, begun from and deleted, over gRPC and REST", async () => {
    const id = await api.sandbox(codebase, { sync: "SYNC_MODE_MANUAL" });
    await api.exec(id, "echo one > a.txt");
    const request = { sandbox_id: id, label: "one" };
    const first = await api.call("SandboxService.SnapshotSandbox", request);
    expect(first).toMatchObject({ sandbox_id: id, owner_id: "tester", codebase_id: codebase, label: "one" });
    await api.exec(id, "echo two > a.txt");
    const { json: second } = await api.rest.post(`/v1/sandboxes/${id}/snapshots`, { label: "two" });
    expect(second).toMatchObject({ sandboxId: id, label: "two" });
    const listed = (await api.call("SandboxService.ListSnapshots", { sandbox_id: id })) as {
      snapshots: { label: string }[];
    };
    expect(listed.snapshots.map(({ label }) => label)).toEqual(["one", "two"]);
    await api.call("SandboxService.RestoreSandbox", { sandbox_id: id, snapshot_id: first.id });
    expect(await api.exec(id, "cat a.txt")).toMatchObject({ stdout: "one\n" });
    const forks = { sandbox_id: id, count: 2, settings: { labels: { try: "1" } } };
    const { sandboxes } = (await api.call("SandboxService.ForkSandbox", forks)) as { sandboxes: { id: string }[] };
    expect(sandboxes).toHaveLength(2);
    await api.call("SandboxService.StartSandbox", { sandbox_id: sandboxes[0]!.id });
    expect(await api.exec(sandboxes[0]!.id, "cat a.txt")).toMatchObject({ stdout: "one\n" });
    const alike = await api.rest.post(`/v1/sandboxes/${id}/fork`, { count: 1 });
    expect(alike.json).toMatchObject({ sandboxes: [{ codebaseId: codebase }] });
    const { json: all } = await api.rest.get(`/v1/snapshots?sandbox_id=${id}`);
    expect((all as { snapshots: unknown[] }).snapshots).toHaveLength(2);
    const secondId = (second as { id: string }).id;
    const made = await api.call("SandboxService.CreateSandbox", { snapshot_id: secondId });
    await api.call("SandboxService.StartSandbox", { sandbox_id: made.id });
    expect(await api.exec(made.id as string, "cat a.txt")).toMatchObject({ stdout: "two\n" });
    await api.call("SandboxService.DeleteSnapshot", { snapshot_id: first.id });
    expect((await api.rest.request("DELETE", `/v1/snapshots/${secondId}`)).json).toEqual({});
    await api.refused({
      method: "SandboxService.RestoreSandbox",
      request: { sandbox_id: id, snapshot_id: secondId },
      rest: `POST /v1/sandboxes/${id}/restore`,
      status: "NOT_FOUND",
      message: "snapshot not found",
    });
    await api.refused({
      method: "SandboxService.CreateSandbox",
      request: { codebase_id: codebase, snapshot_id: secondId },
      rest: "POST /v1/sandboxes",
      status: "NOT_FOUND",
      message: "snapshot not found",
    });
  });
});

testsCover(api, COVERAGE.snapshots);
