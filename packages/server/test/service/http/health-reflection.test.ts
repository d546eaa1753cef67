import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { bearer, grpcClient, metadata, openTestService, READER, type TestService, unary } from "./fixture.ts";

let open: TestService;
beforeAll(async () => {
  open = await openTestService({ keys: "required" });
});
afterAll(async () => {
  await open[Symbol.asyncDispose]();
});

function healthOf(address: string) {
  return grpcClient("grpc/health/v1/health.proto", "grpc.health.v1.Health", address);
}

describe("health", () => {
  test.each(["", "sandbox.v1.SystemService", "sandbox.v1.SandboxService"])("%j is serving", async (service) => {
    using client = healthOf(open.grpc);
    expect(await unary(client, "Check", { service })).toMatchObject({ response: { status: "SERVING" } });
  });

  test("an unknown service is NOT_FOUND, and a watch of it is told so", async () => {
    using client = healthOf(open.grpc);
    expect(await unary(client, "Check", { service: "nobody.Home" })).toMatchObject({ code: "NOT_FOUND" });
    const watch = (client.Watch as Stream).call(client, { service: "nobody.Home" });
    const first = await new Promise((resolve) => watch.once("data", resolve));
    expect(first).toEqual({ status: "SERVICE_UNKNOWN" });
    watch.on("error", () => {});
    watch.cancel();
  });

  test("a watch is told of changes, and ends with the server", async () => {
    let ready = true;
    const changing = await openTestService({ ready: () => ready });
    using client = healthOf(changing.grpc);
    const seen: unknown[] = [];
    const watch = (client.Watch as Stream).call(client, {});
    watch.on("data", ({ status }: { status: string }) => seen.push(status));
    const ended = new Promise<string>((resolve) =>
      watch.on("status", ({ code }: grpc.StatusObject) => resolve(grpc.status[code])),
    );
    watch.on("error", () => {});
    await eventually(() => seen.length === 1);
    ready = false;
    await eventually(() => seen.length === 2);
    ready = true;
    await eventually(() => seen.length === 3);
    await changing.service.drain(2_000);
    expect(seen.slice(0, 3)).toEqual(["SERVING", "NOT_SERVING", "SERVING"]);
    expect(await ended).toMatch(/OK|UNAVAILABLE/);
  });
});

type Stream = (request: object) => grpc.ClientReadableStream<never>;
type Duplex = (metadata: grpc.Metadata) => grpc.ClientDuplexStream<object, Record<string, never>>;

const VERSIONS = [
  ["v1", "grpc/reflection/v1/reflection.proto", "grpc.reflection.v1.ServerReflection"],
  ["v1alpha", "grpc/reflection/v1alpha/reflection.proto", "grpc.reflection.v1alpha.ServerReflection"],
] as const;

describe.each(VERSIONS)("reflection %s", (_version, file, service) => {
  async function ask(...questions: object[]): Promise<Record<string, unknown>[]> {
    using client = grpcClient(file, service, open.grpc);
    const call = (client.ServerReflectionInfo as Duplex).call(client, metadata(bearer(READER)));
    const answers: Record<string, unknown>[] = [];
    for (const question of questions) call.write(question);
    call.end();
    for await (const answer of call) answers.push(answer as Record<string, unknown>);
    return answers;
  }

  function filesIn(answer: Record<string, unknown>): string[] {
    const { file_descriptor_proto: files } = answer.file_descriptor_response as { file_descriptor_proto: Buffer[] };
    return files.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name);
  }

  test("lists the services", async () => {
    const [answer] = await ask({ list_services: "" });
    expect(answer).toMatchObject({
      list_services_response: {
        service: [
          { name: "grpc.health.v1.Health" },
          { name: "grpc.reflection.v1.ServerReflection" },
          { name: "grpc.reflection.v1alpha.ServerReflection" },
          { name: "sandbox.v1.CodebaseService" },
          { name: "sandbox.v1.EventService" },
          { name: "sandbox.v1.SandboxService" },
          { name: "sandbox.v1.SystemService" },
        ],
      },
    });
  });

  test("finds files by symbol and by name, with all they import", async () => {
    const answers = await ask(
      { file_containing_symbol: "sandbox.v1.SystemService" },
      { file_containing_symbol: "sandbox.v1.SandboxService.Exec" },
      { file_containing_symbol: "sandbox.v1.ExecOutput.OutputType" },
      { file_by_filename: "sandbox/v1/common.proto" },
      { file_containing_extension: { containing_type: "google.protobuf.MethodOptions", extension_number: 72295728 } },
    );
    const [system = [], exec = [], nested = [], common = [], http = []] = answers.map(filesIn);
    expect(system[0]).toBe("sandbox/v1/system.proto");
    expect(system).toEqual(
      expect.arrayContaining([
        "google/api/annotations.proto",
        "google/api/http.proto",
        "google/protobuf/descriptor.proto",
      ]),
    );
    expect(exec[0]).toBe("sandbox/v1/sandbox.proto");
    expect(nested[0]).toBe("sandbox/v1/sandbox.proto");
    expect(common).toEqual(["sandbox/v1/common.proto"]);
    expect(http[0]).toBe("google/api/annotations.proto");
  });

  test("numbers the extensions of a type, and says what it does not know", async () => {
    const answers = await ask(
      { all_extension_numbers_of_type: "google.protobuf.MethodOptions" },
      { file_by_filename: "etc/passwd" },
      { file_containing_symbol: "no.Such" },
      { all_extension_numbers_of_type: "no.Such" },
      {},
    );
    expect(answers[0]).toMatchObject({ all_extension_numbers_response: { extension_number: [72295728] } });
    expect(answers.slice(1).map((answer) => (answer.error_response as { error_code: number }).error_code)).toEqual([
      5, 5, 5, 3,
    ]);
  });

  test("is for those with a key", async () => {
    using client = grpcClient(file, service, open.grpc);
    const call = (client.ServerReflectionInfo as Duplex).call(client, metadata({}));
    call.write({ list_services: "" });
    const code = await new Promise((resolve) => call.on("error", (error: grpc.ServiceError) => resolve(error.code)));
    expect(code).toBe(grpc.status.UNAUTHENTICATED);
  });
});
