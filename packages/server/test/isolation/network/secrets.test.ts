import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import {
  checkSecretValue,
  parseSecretRule,
  placeholderFor,
  placeText,
  type RequestHead,
  type Secret,
  SecretSet,
} from "../../../src/isolation/network/secrets.ts";

const VALUE = "sk-ant-api03-Zq7+Rw/91kLm=Xy&T%u";

function secret(
  place: string,
  { value = VALUE, hosts = ["api.test"] }: { value?: string; hosts?: string[] } = {},
): Secret {
  return { ...parseSecretRule("API_KEY", hosts, place), value, placeholder: placeholderFor(value) };
}

/** What arrives at the host, and where placeholders were found that stay. */
function sent(
  one: Secret,
  head: RequestHead,
  host: string | undefined = "api.test",
): { head: RequestHead; misplaced: string[] } {
  const misplaced: string[] = [];
  return { head: new SecretSet([one]).intoHead(head, host, (_secret, where) => misplaced.push(where)), misplaced };
}

function body(one: Secret, chunks: readonly string[], host = "api.test"): { text: string; misplaced: string[] } {
  const misplaced: string[] = [];
  const replacer = new SecretSet([one]).intoBody(host, (_secret, where) => misplaced.push(where))!;
  const parts = [...chunks.map((chunk) => replacer.push(Buffer.from(chunk))), replacer.flush()];
  return { text: Buffer.concat(parts).toString(), misplaced };
}

const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

test.each([
  ["sk-ant-api03-AbCdEfGhIjKlMnOp", /^sk-ant-api03-[A-Za-z0-9]{16}$/],
  ["ghp_0123456789abcdefghijABCDEFGHIJ012345", /^ghp_[A-Za-z0-9]{36}$/],
  ["0123456789abcdef0123456789abcdef", /^[0-9a-f]{32}$/],
  ["8b1f0c5e-2c1d-4a57-9f0e-0123456789ab", /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/],
  ["correct horse battery staple!", /^[A-Za-z0-9]{29}$/],
  ["sk-12345", /^[A-Za-z0-9]{8}$/],
])("the placeholder of %s has its length and the prefix of its kind, and is another one each time", (value, form) => {
  const placeholder = placeholderFor(value);
  expect(placeholder).toMatch(form);
  expect(placeholder).not.toBe(value);
  expect(placeholderFor(value)).not.toBe(placeholder);
});

test("a secret has a name that can be a variable, hosts that can be names, and one of five places", () => {
  expect(parseSecretRule("A_1", ["API.Example.com.", "*.b.test"], "header X-Api-Key")).toEqual({
    name: "A_1",
    hosts: ["api.example.com", "*.b.test"],
    place: { kind: "header", name: "x-api-key" },
  });
  for (const place of ["header x-api-key", "bearer", "basic", "query key", "body"]) {
    expect(placeText(parseSecretRule("A", ["a.test"], place).place)).toBe(place);
  }
  for (const name of ["", "1A", "A-B", "A=B", "A\0"])
    expect(() => parseSecretRule(name, ["a.test"], "bearer")).toThrow("is no name of a secret");
  for (const hosts of [undefined, [], "a.test", ["a.test", 3], ["127.0.0.1"], ["*"], ["a.test:443"]]) {
    expect(() => parseSecretRule("A", hosts, "bearer")).toThrow(/host/);
  }
  for (const place of [
    undefined,
    "",
    "header",
    "header a b",
    "header Host",
    "header transfer-encoding",
    "cookie",
    "query",
    "Bearer",
  ]) {
    expect(() => parseSecretRule("A", ["a.test"], place)).toThrow("cannot be put in");
  }
});

test("a value that cannot travel is refused, in words that have nothing of it", () => {
  const refused = (value: string, place = "bearer") => {
    try {
      checkSecretValue(parseSecretRule("A", ["a.test"], place), value);
      return "";
    } catch (error) {
      expect(String(error)).not.toContain(value.trim().slice(0, 5));
      return (error as Error).message;
    }
  };
  expect(refused("shorter")).toContain("has 7 characters");
  expect(refused("x".repeat(8193))).toContain("has 8193 characters");
  expect(refused("two\nlines of it")).toContain("one line");
  expect(refused("pässwörter")).toContain("one line");
  expect(refused(" Qx9+Qx9+Qx9")).toContain("space");
  expect(refused('Qx9+"Qx9+Qx9', "body")).toContain("quote");
  expect(refused('Qx9+"Qx9+Qx9')).toBe("");
  expect(refused(VALUE, "body")).toBe("");
});

test("in a header the value stands where the placeholder stood, and in no other header", () => {
  const one = secret("header x-api-key");
  const { head, misplaced } = sent(one, {
    target: "/v1",
    headers: [
      ["Host", "api.test"],
      ["X-API-Key", one.placeholder],
      ["X-Other", one.placeholder],
    ],
  });
  expect(head.headers).toEqual([
    ["Host", "api.test"],
    ["X-API-Key", VALUE],
    ["X-Other", one.placeholder],
  ]);
  expect(misplaced).toEqual(["the header x-other"]);
  expect(sent(one, { target: "/", headers: [["x-api-key", `token ${one.placeholder}`]] }).head.headers).toEqual([
    ["x-api-key", `token ${VALUE}`],
  ]);
});

test.each([
  ["another host", "header x-api-key", (ph: string) => ({ target: "/", headers: [["x-api-key", ph]] }), "other.test"],
  ["a host below", "header x-api-key", (ph: string) => ({ target: "/", headers: [["x-api-key", ph]] }), "sub.api.test"],
  ["no host (no TLS)", "header x-api-key", (ph: string) => ({ target: "/", headers: [["x-api-key", ph]] }), undefined],
  [
    "a header that is there twice",
    "header x-api-key",
    (ph: string) => ({
      target: "/",
      headers: [
        ["x-api-key", ph],
        ["X-API-KEY", "b"],
      ],
    }),
    "api.test",
  ],
  [
    "a header with it twice",
    "header x-api-key",
    (ph: string) => ({ target: "/", headers: [["x-api-key", `${ph} ${ph}`]] }),
    "api.test",
  ],
  [
    "another scheme",
    "bearer",
    (ph: string) => ({ target: "/", headers: [["authorization", `Token ${ph}`]] }),
    "api.test",
  ],
  [
    "more than a token",
    "bearer",
    (ph: string) => ({ target: "/", headers: [["authorization", `Bearer ${ph}x`]] }),
    "api.test",
  ],
  [
    "basic instead of bearer",
    "bearer",
    (ph: string) => ({ target: "/", headers: [["authorization", basic(`me:${ph}`)]] }),
    "api.test",
  ],
  [
    "a part of a password",
    "basic",
    (ph: string) => ({ target: "/", headers: [["authorization", basic(`me:${ph}x`)]] }),
    "api.test",
  ],
  ["another field", "query key", (ph: string) => ({ target: `/?k=${ph}`, headers: [] }), "api.test"],
  [
    "a field that is there twice",
    "query key",
    (ph: string) => ({ target: `/?key=${ph}&k%65y=${ph}`, headers: [] }),
    "api.test",
  ],
  ["the path", "query key", (ph: string) => ({ target: `/${ph}`, headers: [] }), "api.test"],
  [
    "the address instead of a header",
    "header x-api-key",
    (ph: string) => ({ target: `/?a=${ph}`, headers: [] }),
    "api.test",
  ],
  ["a header's name", "header x-api-key", (ph: string) => ({ target: "/", headers: [[ph, "x-api-key"]] }), "api.test"],
] as [string, string, (placeholder: string) => RequestHead, string | undefined][])(
  "nothing is put in for %s, and it is told",
  (_title, place, make, host) => {
    const one = secret(place);
    const before = make(one.placeholder);
    const misplaced: string[] = [];
    const after = new SecretSet([one]).intoHead(before, host, (rule, where) =>
      misplaced.push(`${rule.name} in ${where}`),
    );
    expect(after).toEqual(before);
    expect(misplaced.length).toBeGreaterThan(0);
    expect(misplaced[0]).toMatch(/^API_KEY in the /);
  },
);

test("neither another case nor base64 of a placeholder is one", () => {
  const one = secret("header x-api-key");
  for (const value of [
    one.placeholder.toUpperCase(),
    one.placeholder.toLowerCase(),
    Buffer.from(one.placeholder).toString("base64"),
  ]) {
    const head: RequestHead = { target: "/", headers: [["x-api-key", value]] };
    expect(sent(one, head)).toEqual({ head, misplaced: [] });
  }
});

test("a bearer's token, a user or a password of basic, and one field of a query are replaced", () => {
  const bearer = secret("bearer");
  expect(sent(bearer, { target: "/", headers: [["Authorization", `bearer  ${bearer.placeholder}`]] })).toEqual({
    head: { target: "/", headers: [["Authorization", `bearer  ${VALUE}`]] },
    misplaced: [],
  });
  const pair = secret("basic");
  for (const form of [(text: string) => `x-access-token:${text}`, (text: string) => `${text}:`]) {
    const { head, misplaced } = sent(pair, {
      target: "/",
      headers: [["authorization", basic(form(pair.placeholder))]],
    });
    expect(head.headers).toEqual([["authorization", basic(form(VALUE))]]);
    expect(misplaced).toEqual([]);
  }
  const query = secret("query key");
  expect(sent(query, { target: `/a?b=1&key=${query.placeholder}&c=%20`, headers: [] })).toEqual({
    head: { target: `/a?b=1&key=${encodeURIComponent(VALUE)}&c=%20`, headers: [] },
    misplaced: [],
  });
});

test("a wildcard of a secret's hosts means names below, as in the network's list", () => {
  const one = secret("bearer", { hosts: ["*.api.test"] });
  const set = new SecretSet([one]);
  expect(["a.api.test", "a.b.api.test", "api.test", "xapi.test"].map((host) => set.isFor(host))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("in a body the first placeholder is replaced, wherever chunks end, and the next one stays and is told", () => {
  const value = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
  const one = secret("body", { value });
  const text = `{"token":"${one.placeholder}","again":"${one.placeholder}"}`;
  const expected = { text: `{"token":"${value}","again":"${one.placeholder}"}`, misplaced: ["the body"] };
  expect(body(one, [text])).toEqual(expected);
  expect(body(one, [...text])).toEqual(expected);
  for (let at = 1; at < text.length; at++) expect(body(one, [text.slice(0, at), text.slice(at)])).toEqual(expected);
  expect(body(one, [text], "other.test")).toEqual({ text, misplaced: ["the body", "the body"] });
  expect(body(secret("bearer", { value }), ["nothing of it"])).toEqual({ text: "nothing of it", misplaced: [] });
});

/** A response with the text in it, in chunks as given. */
function masked(one: Secret, chunks: readonly Buffer[]): string {
  const stream = new SecretSet([one]).outOf("api.test")!.stream();
  return Buffer.concat([...chunks.map((chunk) => stream.push(Buffer.from(chunk))), stream.flush()]).toString("latin1");
}

test("an echo is masked wherever chunks end, in every encoding that servers use, and keeps its length", () => {
  const one = secret("header x-api-key");
  const encodings: Record<string, (text: string) => string> = {
    plain: (text) => text,
    json: (text) => JSON.stringify({ "x-api-key": text }),
    percent: encodeURIComponent,
    hex: (text) => Buffer.from(text).toString("hex"),
    HEX: (text) => Buffer.from(text).toString("hex").toUpperCase(),
    ...Object.fromEntries(
      ["", "a", "ab"].map((user) => [`base64 after ${user}`, (text: string) => basic(`${user}:${text}:`)]),
    ),
    base64url: (text) => Buffer.from(`me:${text}`).toString("base64url"),
  };
  for (const [name, encode] of Object.entries(encodings)) {
    const echo = Buffer.from(`before ${encode(VALUE)} after ${encode(VALUE)}`);
    const whole = masked(one, [echo]);
    expect(whole.length, name).toBe(echo.length);
    // No eight characters of it in a row are left but those that its kind shares.
    const leaked = echo.toString().slice(7, 7 + encode(VALUE).length);
    expect(whole, name).not.toContain(leaked.slice(-12, -4));
    for (let at = 1; at < echo.length; at++) expect(masked(one, [echo.subarray(0, at), echo.subarray(at)])).toBe(whole);
    expect(
      masked(
        one,
        [...echo].map((byte) => Buffer.of(byte)),
      ),
    ).toBe(whole);
  }
  expect(masked(one, [Buffer.from(VALUE)])).toBe(one.placeholder);
  expect(new SecretSet([one]).outOf("api.test")!.text(`key=${VALUE}; ü`)).toBe(`key=${one.placeholder}; ü`);
  expect(new SecretSet([one]).outOf("other.test")).toBeUndefined();
});

test("what goes on at once depends on the form of the data and not on the value", () => {
  const one = secret("bearer");
  const heldOf = (text: string) => {
    const stream = new SecretSet([one]).outOf("api.test")!.stream();
    return text.length - stream.push(Buffer.from(text)).length;
  };
  expect(heldOf("data: {}\n\n")).toBe(0);
  expect(heldOf("\u0000\u0001\u001f")).toBe(0);
  for (const length of [1, 5, VALUE.length - 1]) {
    expect(heldOf(`x\n${VALUE.slice(0, length)}`)).toBe(heldOf(`x\n${"?".repeat(length)}`));
  }
  const other = secret("bearer", { value: VALUE.replaceAll(/[^A-Za-z0-9-]/g, "x") });
  const held = (which: Secret) => {
    const stream = new SecretSet([which]).outOf("api.test")!.stream();
    return 1000 - stream.push(Buffer.from("y".repeat(1000))).length;
  };
  expect(held(other)).toBe(held(one));
});

test("a body in which nothing is replaced goes on at once, and the placeholder in it is told all the same", () => {
  const one = secret("body");
  const misplaced: string[] = [];
  const watcher = new SecretSet([one]).intoBody(undefined, (_secret, where) => misplaced.push(where))!;
  for (const chunk of ["begun ", one.placeholder.slice(0, 5), one.placeholder.slice(5)]) {
    expect(watcher.push(Buffer.from(chunk)).toString()).toBe(chunk);
  }
  expect([watcher.flush().length, misplaced]).toEqual([0, ["the body"]]);
});

test("binary data without the value passes unchanged, however it is cut", () => {
  const one = secret("bearer");
  const data = randomBytes(100_000);
  const chunks: Buffer[] = [];
  for (let at = 0; at < data.length; at += 977) chunks.push(data.subarray(at, at + 977));
  expect(masked(one, chunks)).toBe(data.toString("latin1"));
});
