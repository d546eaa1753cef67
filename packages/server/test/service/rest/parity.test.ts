import { ERROR_DOMAIN, ERRORS, httpStatusOf, STATUS_NUMBERS } from "@agentfense/protocol";
import { http } from "@agentfense/protocol/annotations";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import {
  create,
  type DescField,
  type DescMethod,
  type DescMethodUnary,
  equals,
  fromJson,
  getOption,
  hasOption,
  type JsonValue,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import { type Code, ConnectError } from "@connectrpc/connect";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRestHandler } from "../../../src/service/rest/handler.ts";
import { parseJson } from "../../../src/service/rest/json-text.ts";
import { RouteTable } from "../../../src/service/rest/route-table.ts";
import { parameterMessage, type Route, routesOf } from "../../../src/service/rest/routes.ts";
import { messageArbitrary } from "./arbitrary.ts";
import { LIMITS, SERVICES, transportTo } from "./support.ts";

const methods = SERVICES.flatMap((service) => service.methods);
const routes = routesOf(SERVICES);

function routeOf(method: DescMethod): Route {
  const [route, ...others] = routes.filter((each) => each.exchange.method === method);
  if (route === undefined || others.length > 0) {
    throw new Error(`${method.name} has ${others.length} routes too many, or none`);
  }
  return route;
}

describe("the routes of the contract", () => {
  test("every method has exactly one, except those that stream both ways, which have none", () => {
    const counted = methods.map((method) => [
      method.name,
      routes.filter((each) => each.exchange.method === method).length,
    ]);
    const expected = methods.map((method) => [method.name, method.methodKind === "bidi_streaming" ? 0 : 1]);
    expect(counted).toEqual(expected);
    expect(methods.filter((method) => hasOption(method, http)).length).toBe(routes.length);
  });

  test("no two collide, and each is found by its own path", () => {
    const table = new RouteTable(routes);
    for (const route of routes) {
      const path = route.segments.map((segment) => (segment.kind === "literal" ? segment.text : "x")).join("/");
      expect(table.find(`/${path}`)?.route(route.httpMethod)?.route).toBe(route);
    }
  });

  test("API-08 each that takes the path of a file refuses one with an empty name in it, encoded or not", () => {
    const table = new RouteTable(routes);
    const taking = routes.filter((route) => route.segments.at(-1)?.kind === "rest");
    expect(taking.length).toBeGreaterThan(5);
    for (const route of taking) {
      const above = route.segments.slice(0, -1).map((segment) => (segment.kind === "literal" ? segment.text : "x"));
      const lastValue = (path: string) => {
        const values = table.find(`/${above.join("/")}/${path}`)?.route(route.httpMethod)?.values;
        return [...(values?.values() ?? [])].at(-1);
      };
      for (const path of ["/x", "//x", "a//b", "a/", "/", "%2F%2Fx", "a%2F%2Fb", "a%2F/b", "a%2F"]) {
        expect(() => lastValue(path), `${route.template} with ${path}`).toThrow(/has an empty name/);
      }
      expect(["", "a/b", "a%2Fb", "%2Fa", "%2F"].map(lastValue)).toEqual(["", "a/b", "a/b", "/a", "/"]);
    }
  });

  test("every parameter of a path is a field of the request, or of the message that begins its stream", () => {
    for (const route of routes) {
      const names = [...(getOption(route.exchange.method, http).pattern.value?.matchAll(/\{([a-z_.]+)/g) ?? [])].map(
        (each) => each[1],
      );
      expect([...route.parameters.keys()]).toEqual(names);
      for (const [name, field] of route.parameters) {
        expect(parameterMessage(route.exchange).fields.find((each) => each.name === name)).toBe(field);
      }
    }
  });
});

/** What the method under test saw, and what it is to answer. */
interface Round {
  seen: Message[];
  answer: Message | ConnectError;
}

const round: Round = { seen: [], answer: new ConnectError("not set") };
const transport = transportTo(() => (input) => {
  round.seen.push(input as Message);
  if (round.answer instanceof ConnectError) {
    throw round.answer;
  }
  return round.answer;
});
const handler = createRestHandler({
  services: SERVICES,
  transport,
  limits: { ...LIMITS, bodyBytes: 1024 * 1024 },
  log: (line) => {
    throw line.error;
  },
});

describe("a unary method is the same over REST and over gRPC", () => {
  for (const method of methods.filter((each) => each.methodKind === "unary")) {
    test(`${method.parent.name}.${method.name}`, async () => {
      const route = routeOf(method);
      const answers = fc.oneof(messageArbitrary(method.output), errorArbitrary);
      await fc.assert(
        fc.asyncProperty(messageArbitrary(method.input), answers, fc.boolean(), async (input, answer, snakeCase) => {
          fc.pre(fitsIntoUrl(route, input));
          round.seen = [];
          round.answer = answer;
          const direct = await transport.unary(method as DescMethodUnary, undefined, undefined, undefined, input).then(
            ({ message }) => message,
            (error: unknown) => ConnectError.from(error),
          );
          const request = httpRequest(route, input, snakeCase);
          const response = await handler(request, request.url.slice("http://localhost".length));
          const body = parseJson((await response?.bytes()) ?? new Uint8Array()) as JsonValue;

          expect(round.seen.length).toBe(2);
          const [overGrpc, overRest] = round.seen as [Message, Message];
          expect(equals(method.input, overGrpc, overRest)).toBe(true);
          if (direct instanceof ConnectError) {
            const [info] = direct.findDetails(ErrorInfoSchema);
            expect(response?.status).toBe(httpStatusOf(direct.code));
            expect(body).toEqual({
              code: direct.code,
              message: direct.rawMessage,
              details: [
                {
                  "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                  reason: info?.reason,
                  domain: ERROR_DOMAIN,
                  metadata: info?.metadata,
                },
              ],
            });
          } else {
            expect(response?.status).toBe(200);
            expect(equals(method.output, direct as Message, fromJson(method.output, body))).toBe(true);
            expect(Object.keys(body as object)).toEqual(method.output.fields.map((field) => field.jsonName));
          }
        }),
        { numRuns: 60 },
      );
    });
  }
});

const errorArbitrary = fc
  .record({
    reason: fc.constantFrom(...(Object.keys(ERRORS) as (keyof typeof ERRORS)[])),
    message: fc.string({ unit: "binary", maxLength: 40 }),
    metadata: fc.dictionary(fc.string({ minLength: 1, maxLength: 5 }), fc.string({ maxLength: 5 }), {
      noNullPrototype: true,
    }),
  })
  .map(({ reason, message, metadata }) => {
    const code = STATUS_NUMBERS[ERRORS[reason].status] as Code;
    return new ConnectError(message, code, undefined, [
      { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { reason, domain: ERROR_DOMAIN, metadata }) },
    ]);
  });

function fieldValue(input: Message, field: DescField): string {
  return String((input as unknown as Record<string, unknown>)[field.localName]);
}

/** A Request object resolves these two segments away, whatever their encoding; the raw form is tested elsewhere. */
function fitsIntoUrl(route: Route, input: Message): boolean {
  const values = [...route.parameters.values()].map((field) => fieldValue(input, field));
  return values.every((value) => value.split("/").every((segment) => !/^(\.|%2e){1,2}$/i.test(segment)));
}

function httpRequest(route: Route, input: Message, snakeCase: boolean): Request {
  const json = toJson(route.exchange.method.input, input, { useProtoFieldName: snakeCase }) as {
    [key: string]: JsonValue;
  };
  const path = route.segments.map((segment) => {
    if (segment.kind === "literal") {
      return segment.text;
    }
    const field = route.parameters.get(segment.field);
    const value = field === undefined ? "" : fieldValue(input, field);
    const texts = segment.kind === "rest" ? value.split("/") : [value];
    return texts.map(encodeURIComponent).join("/");
  });
  const url = `http://localhost/${path.join("/")}`;
  if (route.hasJsonBody) {
    return new Request(url, { method: route.httpMethod, body: JSON.stringify(json) });
  }
  const query = Object.entries(json).flatMap(([name, value]) => queryPairs(name, value));
  return new Request(`${url}?${query.join("&")}`, { method: route.httpMethod });
}

function queryPairs(name: string, value: JsonValue): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item) => queryPairs(name, item));
  }
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([key, item]) => queryPairs(`${name}[${key}]`, item));
  }
  return [`${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`];
}
