import { expect, test } from "vitest";
import { openApiDocument } from "../../../src/service/openapi/openapi.ts";
import { routesOf } from "../../../src/service/rest/routes.ts";
import { SERVICES } from "../rest/support.ts";

const document = openApiDocument(SERVICES, { version: "1.2.3" });
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([verb, operation]) => ({ path, verb, operation })),
);

test("every route is an operation, and every method without a route is named", () => {
  expect(operations.length).toBe(routesOf(SERVICES).length);
  expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length);
  expect(document.tags.flatMap((tag) => tag["x-grpc-only"].map((each) => each.method))).toEqual([
    "sandbox.v1.SandboxService/OpenTerminal",
    "sandbox.v1.SandboxService/ExecInteractive",
    "sandbox.v1.SandboxService/ForwardPort",
  ]);
});

test("every reference leads somewhere, and the document is JSON", () => {
  const text = JSON.stringify(document);
  expect(JSON.parse(text)).toEqual(document);
  for (const [, kind, name] of text.matchAll(/"#\/components\/(schemas|responses)\/([^"]+)"/g)) {
    expect(Object.keys(document.components[kind as "schemas"])).toContain(name);
  }
});

test("the names in a path are its path parameters", () => {
  for (const { path, operation } of operations) {
    const names = [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]);
    expect(operation.parameters.filter((each) => each.in === "path").map((each) => each.name)).toEqual(names);
  }
});

test("an operation says what goes in, what comes out and what it is for", () => {
  expect(document.paths["/v1/codebases/{codebase_id}/files/{file_path}"]?.put).toMatchObject({
    operationId: "CodebaseService_UploadFiles",
    description: "One file. The first message has the metadata, the others the content.",
    requestBody: { content: { "application/octet-stream": {} } },
    responses: {
      "200": { content: { "application/json": { schema: { $ref: "#/components/schemas/UploadResult" } } } },
    },
    "x-grpc-method": "sandbox.v1.CodebaseService/UploadFiles",
  });
  expect(document.paths["/v1/sandboxes"]?.get?.parameters.find((each) => each.name === "labels")).toMatchObject({
    in: "query",
    style: "deepObject",
    description: "Those that have all of these.",
  });
  expect(document.paths["/v1/events/watch"]?.get?.responses["200"]).toMatchObject({
    content: { "text/event-stream": {}, "application/x-ndjson": {} },
  });
  expect(document.paths["/v1/sandboxes/{sandbox_id}/watch/{path}"]?.get?.responses["200"]).toMatchObject({
    content: { "text/event-stream": {}, "application/x-ndjson": {} },
  });
  expect(document.components.schemas).toHaveProperty("ResourceLimits.properties.cpuQuota", {
    type: "string",
    format: "int64",
    description: "Microseconds of CPU time per 100,000.",
  });
});
