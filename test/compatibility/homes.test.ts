import { beforeAll, describe, expect, test } from "vitest";
import { serveApi, testsCover } from "../support/api.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();
let codebase: string;
beforeAll(async () => {
  codebase = await api.codebase({ "a.txt": "alpha" });
});

describe("homes that outlive sandboxes", () => {
  test("are made, used, listed, locked and deleted, over gRPC and REST", async () => {
    const first = await api.sandbox(codebase, { home: "tools" });
    await api.exec(first, "echo login > ~/token");
    expect(await api.call("SandboxService.GetSandbox", { sandbox_id: first })).toMatchObject({ home: "tools" });
    const listed = { name: "tools", owner_id: "tester", sandbox_id: first };
    expect(await api.call("SandboxService.ListHomes")).toEqual({ homes: [listed] });
    await api.refused({
      method: "SandboxService.DeleteHome",
      request: { name: "tools", owner_id: "tester" },
      rest: "DELETE /v1/homes/tools?owner_id=tester",
      status: "FAILED_PRECONDITION",
      message: `the home tools is in use by the sandbox ${first}`,
    });
    const { id: second } = await api.call("SandboxService.CreateSandbox", { codebase_id: codebase, home: "tools" });
    await api.refused({
      method: "SandboxService.StartSandbox",
      request: { sandbox_id: second },
      rest: `POST /v1/sandboxes/${second}/start`,
      status: "FAILED_PRECONDITION",
      message: `the home tools is in use by the sandbox ${first}`,
    });
    await api.call("SandboxService.DestroySandbox", { sandbox_id: first });
    await api.call("SandboxService.StartSandbox", { sandbox_id: second });
    expect(await api.exec(second as string, "cat ~/token")).toMatchObject({ stdout: "login\n" });
    await api.call("SandboxService.DestroySandbox", { sandbox_id: second });
    const { json } = await api.rest.get("/v1/homes?owner_id=tester");
    expect(json).toEqual({ homes: [{ name: "tools", ownerId: "tester", sandboxId: "" }] });
    expect((await api.rest.request("DELETE", "/v1/homes/tools?owner_id=tester")).json).toEqual({});
    await api.refused({
      method: "SandboxService.DeleteHome",
      request: { name: "tools", owner_id: "tester" },
      rest: "DELETE /v1/homes/tools?owner_id=tester",
      status: "NOT_FOUND",
      message: "home not found",
    });
  });

  test("what is no name is refused when the sandbox is made", async () => {
    await api.refused({
      method: "SandboxService.CreateSandbox",
      request: { codebase_id: codebase, home: "../other" },
      rest: "POST /v1/sandboxes",
      status: "INVALID_ARGUMENT",
      message: /^home is a name/,
    });
  });
});

testsCover(api, COVERAGE.homes);
