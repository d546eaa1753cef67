import { http } from "@agentfense/protocol/annotations";
import { HttpRuleSchema } from "@agentfense/protocol/http";
import { SystemService } from "@agentfense/protocol/system";
import { create, createFileRegistry, type DescService, type MessageInitShape, setExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { routesOf } from "../../../src/service/rest/routes.ts";

/** A service whose only method has this rule. */
function serviceWith(rule: MessageInitShape<typeof HttpRuleSchema>): DescService {
  const options = create(MethodOptionsSchema);
  setExtension(options, http, create(HttpRuleSchema, rule));
  const { file } = SystemService;
  const type = `.${SystemService.method.revokeKey.input.typeName}`;
  const described = create(FileDescriptorProtoSchema, {
    name: "routes.proto",
    package: "routes",
    syntax: "proto3",
    dependency: [`${file.name}.proto`],
    service: [{ name: "Routes", method: [{ name: "Do", inputType: type, outputType: type, options }] }],
  });
  const service = createFileRegistry(described, (name) =>
    name === `${file.name}.proto` ? file : undefined,
  ).getService("routes.Routes");
  if (service === undefined) throw new Error("there is no such service");
  return service;
}

const path = { case: "post", value: "/v1/routes/{key_id}" } as const;

test("a rule with a path and a whole body makes one route", () => {
  expect(routesOf([serviceWith({ pattern: path, body: "*" })])).toMatchObject([
    { httpMethod: "POST", template: path.value, hasJsonBody: true },
  ]);
});

test.each([
  [{ pattern: path, additionalBindings: [{ pattern: path }] }, "routes.Routes/Do has more than one path"],
  [{ pattern: path, body: "key_id" }, "routes.Routes/Do: a body that is the field key_id alone"],
])("what a rule says and REST does not do is refused, not ignored: %j", (rule, message) => {
  expect(() => routesOf([serviceWith(rule)])).toThrow(message);
});
