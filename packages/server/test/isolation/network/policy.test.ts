import { describe, expect, test } from "vitest";
import { learningRules } from "../../../src/isolation/network/list.ts";
import { NetworkPolicy, normalHost, parseNetworkRule, refusal } from "../../../src/isolation/network/policy.ts";
import { NETWORK_PRESETS } from "../../../src/isolation/network/presets.ts";

function policy(...lines: unknown[]): NetworkPolicy {
  return NetworkPolicy.of(lines.map(parseNetworkRule));
}

describe("a line of the list", () => {
  test.each([
    ["example.com", { host: "example.com", ports: [443, 80] }],
    ["Example.COM.", { host: "example.com", ports: [443, 80] }],
    ["github.com:22", { host: "github.com", ports: [22] }],
    ["github.com:22,443,22", { host: "github.com", ports: [22, 443] }],
    ["*.NPMjs.org", { host: "*.npmjs.org", ports: [443, 80] }],
    ["bücher.example", { host: "xn--bcher-kva.example", ports: [443, 80] }],
    [{ host: "example.com" }, { host: "example.com", ports: [443, 80] }],
    [{ host: "example.com:8080" }, { host: "example.com", ports: [8080] }],
    [
      { host: "api.example.com", ports: [443], methods: ["GET", "GET"], paths: ["/v1/*"] },
      { host: "api.example.com", ports: [443], methods: ["GET"], paths: ["/v1/*"] },
    ],
    [
      "git.example@10.1.0.0/16,10.9.9.9",
      { host: "git.example", ports: [443, 80], addresses: ["10.1.0.0/16", "10.9.9.9/32"] },
    ],
    ["git.example:22@FD12::/16", { host: "git.example", ports: [22], addresses: ["fd12::/16"] }],
    [
      { host: "*.corp.example", addresses: ["192.168.7.0/24", "93.184.216.0/24"] },
      { host: "*.corp.example", ports: [443, 80], addresses: ["192.168.7.0/24", "93.184.216.0/24"] },
    ],
  ])("%j is read", (value, rule) => {
    expect(parseNetworkRule(value)).toEqual(rule);
  });

  test.each([
    ["", /no full name/],
    ["*", /too wide/],
    ["*.com", /too wide/],
    ["a*.example.com", /too wide or no wildcard/],
    ["*.*.example.com", /too wide or no wildcard/],
    ["localhost", /no full name/],
    ["127.0.0.1", /no full name/],
    ["2130706433", /no full name/],
    ["0x7f.1", /no full name/],
    ["0177.0.0.1", /no full name/],
    ["１２７.０.０.１", /no full name/],
    ["[::1]", /no name of a host/],
    ["::ffff:127.0.0.1", /no name of a host/],
    ["10.0.0.0/8", /no name of a host/],
    ["https://example.com", /no name of a host/],
    ["user@example.com", /no full name/],
    ["u.ser@example.com", /the address "example.com" of u.ser is none/],
    ["@10.0.0.0/8", /no name of a host/],
    ["10.0.0.0/8@10.0.0.0/8", /no name of a host/],
    ["a.example@", /is none/],
    ["a.example@10.0.0.0/8@10.0.0.0/8", /is none/],
    ["a.example@10.0.0.0/33", /is none/],
    ["a.example@10.0.0.0/08", /is none/],
    ["a.example@fe80::1%lo", /is none/],
    ["a.example@10.1.2.3/16", /begins at another address/],
    ["a.example@127.0.0.0/8", /neither public nor/],
    ["a.example@0.0.0.0/0", /neither public nor/],
    ["a.example@8.0.0.0/6", /neither public nor/],
    ["a.example@169.254.0.0/16", /neither public nor/],
    ["a.example@198.18.0.0/15", /neither public nor/],
    ["a.example@224.0.0.0/4", /neither public nor/],
    ["a.example@::/0", /neither public nor/],
    ["a.example@::1", /neither public nor/],
    ["a.example@::ffff:10.0.0.0/104", /neither public nor/],
    ["a.example@fe80::/10", /neither public nor/],
    [{ host: "a.example", addresses: [] }, /addresses of/],
    [{ host: "a.example@10.0.0.0/8", addresses: ["10.0.0.0/8"] }, /given twice/],
    [{ host: "a.example:22@10.0.0.0/8", ports: [22] }, /given twice/],
    ["exa mple.com", /no name of a host/],
    ["example.com\0.evil.com", /no full name/],
    ["example..com", /no full name/],
    ["-a.example.com", /no full name/],
    [`${"a".repeat(64)}.com`, /no full name/],
    [`${"a.".repeat(127)}com`, /no full name/],
    ["example.com:", /ports of/],
    ["example.com:0", /ports of/],
    ["example.com:65536", /ports of/],
    ["example.com:0x50", /ports of/],
    ["example.com:80,", /ports of/],
    ["example.com:53", /port 53/],
    [{}, /needs a host/],
    [{ host: "example.com", port: 80 }, /has no "port"/],
    [{ host: "example.com:80", ports: [80] }, /given twice/],
    [{ host: "example.com", ports: [] }, /ports of/],
    [{ host: "example.com", ports: ["80"] }, /ports of/],
    [{ host: "example.com", methods: ["get"] }, /methods of/],
    [{ host: "example.com", methods: [] }, /methods of/],
    [{ host: "example.com", paths: ["v1"] }, /paths of/],
    [{ host: "example.com", paths: ["/a?b"] }, /paths of/],
    [null, /a line of/],
    [["example.com"], /a line of/],
    [7, /a line of/],
  ])("%j is refused with a sentence", (value, message) => {
    expect(() => parseNetworkRule(value)).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringMatching(message) }),
    );
  });

  test("a list has a limit", () => {
    const lines = Array.from({ length: 1001 }, (_, index) => parseNetworkRule(`h${index}.example.com`));
    expect(() => NetworkPolicy.of(lines)).toThrow(/at most 1000/);
  });
});

test("the lines of one host do not differ in where it is", () => {
  expect(() => policy("a.example:22@10.0.0.0/8", "a.example:443")).toThrow(/differ in the addresses of a.example/);
  expect(policy("a.example:22@10.0.0.0/8", "a.example@10.0.0.0/8").addressesOf("a.example", 443)).toEqual([
    "10.0.0.0/8",
  ]);
});

test("a list that is learned has every host at usual ports and its own, which nobody can list", () => {
  const rules = learningRules([parseNetworkRule("a.example:8443"), parseNetworkRule("*.b.example:22@10.0.0.0/8")]);
  const list = NetworkPolicy.of(rules);
  expect(list.ports).toEqual([22, 80, 443, 8443, 9418]);
  expect(
    ["c.example", "example.com", "localhost", "_x._tcp.d.example", "1.2.3.4"].map((name) => list.resolves(name)),
  ).toEqual([...[true, true, false, true, false]]);
  expect(list.ruleFor("c.example", 443)?.host).toBe("*");
  expect(list.addressesOf("x.b.example", 22)).toEqual(["10.0.0.0/8"]);
  expect(list.addressesOf("c.example", 22)).toBeUndefined();
});

test("a name has one normal form, and what is none has no form", () => {
  expect(["A.Example", "a.example.", "a.example.."].map(normalHost)).toEqual(["a.example", "a.example", undefined]);
});

test("nothing is allowed by an empty list", () => {
  expect(policy().ruleFor("example.com", 443)).toBeUndefined();
  expect(policy().resolves("example.com")).toBe(false);
  expect(policy().ports).toEqual([]);
});

test("a wildcard is everything below, never the domain itself nor a name that only ends alike", () => {
  const list = policy("*.example.com:443");
  const names = ["a.example.com", "a.b.example.com", "example.com", "badexample.com", "example.com.evil.net", "com"];
  expect(names.map((name) => list.resolves(name))).toEqual([true, true, false, false, false, false]);
  expect(names.map((name) => list.ruleFor(name, 443)?.host)).toEqual(
    names.map((_, index) => (index < 2 ? "*.example.com" : undefined)),
  );
});

test("an exact line comes before a wildcard, the longest wildcard before a shorter one, each for its own ports", () => {
  const list = policy("*.example.com:443,8443", "*.b.example.com:443", "a.b.example.com:443", "a.b.example.com:22");
  expect(list.ports).toEqual([22, 443, 8443]);
  const found = (host: string, port: number) => list.ruleFor(host, port)?.host;
  expect(found("a.b.example.com", 443)).toBe("a.b.example.com");
  expect(found("a.b.example.com", 22)).toBe("a.b.example.com");
  expect(found("a.b.example.com", 8443)).toBe("*.example.com");
  expect(found("c.b.example.com", 443)).toBe("*.b.example.com");
  expect(found("c.example.com", 443)).toBe("*.example.com");
  expect(found("c.example.com", 22)).toBeUndefined();
  expect([list.names("a.b.example.com"), list.names("c.example.com")]).toEqual([true, false]);
});

describe("methods and paths", () => {
  const list = policy(
    { host: "api.example.com", methods: ["GET"], paths: ["/v1/*", "/exact", "/a/*/c/*.json"] },
    { host: "api.example.com", methods: ["POST"], paths: ["/upload"] },
    "open.example.com",
  );

  test.each([
    ["GET", "/v1/", true],
    ["GET", "/v1/x/y?z=/../", true],
    ["GET", "/exact", true],
    ["GET", "/exact?q", true],
    ["GET", "/a/b/c/d.json", true],
    ["POST", "/upload", true],
    ["GET", "/v1/a%20b", true],
    ["GET", "/v1", false],
    ["GET", "/exact/", false],
    ["GET", "/a/c/d.json", false],
    ["POST", "/v1/x", false],
    ["GET", "/upload", false],
    ["GET", "/v1/../admin", false],
    ["GET", "/v1/..", false],
    ["GET", "/v1/./x", false],
    ["GET", "/v1//x", false],
    ["GET", "/v1/%2e%2e/admin", false],
    ["GET", "/v1/%2E%2E/admin", false],
    ["GET", "/v1/..%2fadmin", false],
    ["GET", "/v1/%252e%252e/admin", false],
    ["GET", "/v1/..%5cadmin", false],
    ["GET", "/v1/..\\admin", false],
    ["GET", "/v1/..;/admin", false],
    ["GET", "/v1/x%00", false],
    ["GET", "/v1/%zz", false],
    ["GET", "/v1/#x", false],
    ["GET", "http://api.example.com/v1/x", false],
  ])("%s %s: %s", (method, target, isAllowed) => {
    expect(list.allows("api.example.com", 443, method, target)).toBe(isAllowed);
  });

  test("a host without conditions takes all of them, one that is not listed none", () => {
    expect(list.allows("open.example.com", 443, "DELETE", "/../x")).toBe(true);
    expect(list.allows("open.example.com", 22, "GET", "/")).toBe(false);
    expect(list.allows("other.example.com", 443, "GET", "/")).toBe(false);
  });

  test("a line without conditions is the one that counts for a connection", () => {
    const both = policy({ host: "example.com", methods: ["GET"] }, "example.com:443");
    expect(both.ruleFor("example.com", 443)).toEqual({ host: "example.com", ports: [443] });
    expect(both.ruleFor("example.com", 80)?.methods).toEqual(["GET"]);
  });
});

describe("a cap", () => {
  const cap = policy(
    "*.example.com:443",
    { host: "api.example.com", ports: [443], methods: ["GET"], paths: ["/v1/*"] },
    "github.com:22,443",
    "*.corp.example@10.0.0.0/8,93.184.0.0/16",
  );
  const beyond = (...lines: unknown[]) =>
    policy(...lines)
      .cappedBy(cap)
      .map(({ host }) => host);

  test.each([
    [["a.example.com:443"]],
    [["*.b.example.com:443"]],
    [["github.com:22"]],
    [[{ host: "api.example.com", ports: [443], methods: ["GET"], paths: ["/v1/x", "/v1/y/*"] }]],
    [["*.example.com:443", { host: "api.example.com", ports: [443], methods: ["GET"], paths: ["/v1/*"] }]],
    [["git.corp.example:443@10.1.0.0/16,10.2.0.0/16"]],
    [["git.corp.example:80@93.184.216.34"]],
    [["github.com:443@93.184.216.0/24"]],
  ])("covers %j", (lines) => {
    expect(beyond(...lines)).toEqual([]);
  });

  test.each([
    [["a.example.com"], ["a.example.com"]],
    [["example.com:443"], ["example.com"]],
    [["github.com:22", "gitlab.com:22"], ["gitlab.com"]],
    [["*.com.evil:443"], ["*.com.evil"]],
    [["api.example.com:443"], ["api.example.com"]],
    [["*.example.com:443"], ["*.example.com"]],
    [["*.example.com:443", "api.example.com:443"], ["api.example.com"]],
    [[{ host: "api.example.com", ports: [443], methods: ["GET"], paths: ["/*"] }], ["api.example.com"]],
    [[{ host: "api.example.com", ports: [443], methods: ["PUT"], paths: ["/v1/*"] }], ["api.example.com"]],
    [["*.github.com:443"], ["*.github.com"]],
    [["git.corp.example:443@10.1.0.0/16,192.168.0.0/16"], ["git.corp.example"]],
    [["git.corp.example:443"], ["git.corp.example"]],
    [["github.com:443@10.0.0.0/8"], ["github.com"]],
  ])("does not cover all of %j", (lines, left) => {
    expect(beyond(...lines)).toEqual(left);
  });
});

test("presets are lists of names with ports", () => {
  expect(Object.keys(NETWORK_PRESETS)).toEqual(expect.arrayContaining(["npm", "pypi", "github"]));
  const all = NetworkPolicy.of(Object.values(NETWORK_PRESETS).flat());
  expect(all.rules.filter(({ host }) => host.startsWith("*"))).toEqual([]);
  expect(all.ruleFor("registry.npmjs.org", 443)).toBeDefined();
  expect(all.ruleFor("github.com", 22)).toBeDefined();
});

test("a refusal says what to ask for", () => {
  expect(refusal("example.com")).toBe(
    "example.com is not on this sandbox's list; ask your user for --allow example.com",
  );
  expect(refusal("example.com", 443)).toBe(refusal("example.com"));
  expect(refusal("example.com", 22)).toBe(
    "example.com:22 is not on this sandbox's list; ask your user for --allow example.com:22",
  );
});
