import type { DescMethod, Message } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJson } from "../../../src/service/rest/json-text.ts";
import { routesOf } from "../../../src/service/rest/routes.ts";
import { type Implementation, restTo, SERVICES } from "./support.ts";

/** Takes whatever comes and answers with an empty message. */
function acceptAll(method: DescMethod): Implementation {
  if (method.methodKind === "server_streaming") {
    return async function* () {
      yield {};
    };
  }
  return async (input) => {
    if (method.methodKind === "client_streaming") {
      for await (const _ of input as AsyncIterable<Message>) {
        // Read to the end, whatever it is.
      }
    }
    return {};
  };
}

const rest = restTo(acceptAll);
const EXPECTED: ReadonlySet<number | undefined> = new Set([undefined, 200, 204, 400, 413, 501]);
const routes = routesOf(SERVICES);
const names = [
  ...new Set(
    routes.flatMap((route) => route.exchange.method.input.fields.flatMap((field) => [field.name, field.jsonName])),
  ),
];

const nasty = fc.oneof(
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom(
    "%",
    "%00",
    "%c0%af",
    "..",
    ".",
    "//",
    "\u0000",
    "__proto__",
    "constructor",
    "-1",
    "NaN",
    "1e999",
    "9".repeat(50),
  ),
);
const segment = fc.oneof(
  fc.constantFrom("v1", "codebases", "sandboxes", "files", "exec", "stream", "events", "watch", "batch"),
  nasty,
);
const name = fc.oneof(fc.constantFrom(...names), nasty);
const pathOfRoute = fc
  .tuple(fc.constantFrom(...routes), fc.array(nasty, { minLength: 3, maxLength: 3 }))
  .map(([route, values]) => {
    let next = 0;
    return route.segments.map((each) => {
      next += 1;
      return each.kind === "literal" ? each.text : (values[next % 3] ?? "");
    });
  });
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(nasty, fc.double(), fc.boolean(), fc.constant(null), fc.integer()),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 4 }),
  ),
})).value;
const body = fc.oneof(
  fc.constant(undefined),
  json.map((value) => Buffer.from(JSON.stringify(value))),
  json.map((value) => Buffer.from(JSON.stringify(value).slice(0, -1))),
  fc
    .array(json, { maxLength: 4 })
    .map((values) => Buffer.from(values.map((value) => JSON.stringify(value)).join("\n"))),
  fc.uint8Array({ maxLength: 60 }),
);

test("no request is an error of the server", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"),
      fc.oneof(pathOfRoute, fc.array(segment, { maxLength: 7 })),
      fc.array(fc.tuple(name, nasty), { maxLength: 4 }),
      body,
      fc.option(nasty, { nil: undefined }),
      async (method, path, query, content, lastId) => {
        const target = `/${path.join("/")}?${query.map(([key, value]) => `${key}=${value}`).join("&")}`;
        const hasBody = content !== undefined && method !== "GET" && method !== "HEAD";
        const request = new Request("http://localhost/", {
          method,
          ...(hasBody ? { body: content } : {}),
          headers: lastId !== undefined && /^[ -~]*$/.test(lastId) ? { "Last-Event-ID": lastId } : {},
        });
        // As it may come from the wire, without what a Request makes of it.
        const response = await rest.handler(request, target);
        await response?.bytes();
        expect(EXPECTED).toContain(response?.status);
        expect(rest.logged).toEqual([]);
      },
    ),
    { numRuns: 3000 },
  );
});

test("JSON is read as JSON.parse reads it", () => {
  const parsed = (read: () => unknown) => {
    try {
      return { value: read() };
    } catch {
      return "refused";
    }
  };
  const plainKey = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 3 });
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      nasty,
      fc.double(),
      fc.boolean(),
      fc.array(tie("value")),
      fc.dictionary(plainKey, tie("value")),
    ),
  })).value;
  fc.assert(
    fc.property(
      value,
      fc.nat(),
      fc.constantFrom("", "}", ",", '"', "1", "tru", "\u0001"),
      fc.boolean(),
      (each, at, noise, escapedKey) => {
        // An escaped key that V8 reads rightly sends the text through the other parser.
        const whole = escapedKey ? `{ "\\u0061b" :${JSON.stringify(each)}}` : JSON.stringify(each);
        const place = noise === "" ? 0 : at % (whole.length + 1);
        const text = whole.slice(0, place) + noise + whole.slice(place);
        fc.pre(text.trim() !== "");
        expect(parsed(() => JSON.parse(JSON.stringify(parseJson(Buffer.from(text)))))).toEqual(
          parsed(() => JSON.parse(JSON.stringify(JSON.parse(Buffer.from(text).toString())))),
        );
      },
    ),
    { numRuns: 2000 },
  );
});
