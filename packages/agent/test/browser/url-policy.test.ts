import { NOT_PUBLIC_RANGES } from "@agentfense/permission";
import { describe, expect, test } from "vitest";
import { withoutHanging } from "../../../../test/support/eventually.ts";
import { isPublicAddress } from "../../src/browser/url/address.ts";
import { UrlPattern } from "../../src/browser/url/pattern.ts";
import { type Surroundings, UrlPolicy, type UrlRules } from "../../src/browser/url/policy.ts";
import { proxyScriptUrl } from "../../src/browser/url/proxy-script.ts";

describe("a pattern", () => {
  test.each([
    ["https://example.com/**", "https://example.com/a/b?c#d", true],
    ["https://example.com", "https://example.com:8443/a", true],
    ["https://example.com", "http://example.com/", false],
    ["https://example.com", "wss://example.com/socket", true],
    ["http://example.com", "wss://example.com/socket", false],
    ["*://example.com", "http://example.com/", true],
    ["*://*", "file:///workspace/a", false],
    ["https://example.com:443", "https://example.com/", true],
    ["https://example.com:443", "https://example.com:444/", false],
    ["https://*.example.com", "https://example.com/", true],
    ["https://*.example.com", "https://a.b.example.com/", true],
    ["https://*.example.com", "https://evilexample.com/", false],
    ["https://*.example.com", "https://example.com.evil.org/", false],
    ["https://example.com/docs/**", "https://example.com/docs/a", true],
    ["https://example.com/docs/**", "https://example.com/docs/../private", false],
    ["https://example.com/docs/**", "https://example.com/docs/%2e%2e/private", false],
    ["https://example.com/docs/**", "https://example.com/docs\\..\\private", false],
    ["https://example.com/*.html", "https://example.com/a/b.html", true],
    ["https://example.com/a", "https://example.com/ab", false],
    // Who is in front of the @ is not where it goes.
    ["https://allowed.org", "https://allowed.org@evil.org/", false],
    ["https://allowed.org", "https://allowed.org:x@evil.org/", false],
    ["https://allowed.org", "https://evil.org/allowed.org", false],
    ["https://allowed.org", "https://evil.org\\@allowed.org/", false],
    ["https://ALLOWED.org", "HTTPS://Allowed.ORG./", true],
    ["https://bücher.example", "https://xn--bcher-kva.example/", true],
    ["https://xn--bcher-kva.example", "https://BÜCHER.example/", true],
    ["http://127.0.0.1", "http://2130706433/", true],
    ["http://127.0.0.1", "http://0x7f.0.0.1/", true],
    ["http://127.0.0.1", "http://0177.0.0.01/", true],
    ["http://127.0.0.1", "http://127.1/", true],
    ["http://[::1]:80", "http://[0:0::1]/", true],
    ["http://[::ffff:127.0.0.1]", "http://[::ffff:7f00:1]/", true],
    ["file:///workspace/**", "file:///workspace/a.html", true],
    ["file:///workspace/**", "file:///workspace/../etc/passwd", false],
    ["file:///workspace/**", "file://server/workspace/a.html", false],
  ])("%s and %s: %s", (pattern, url, matches) => {
    expect(new UrlPattern(pattern).matches(new URL(url))).toBe(matches);
  });

  test.each([
    ..."example.com https:// https:///a ftp://example.com chrome://version https://a:99999 https://a*b.com".split(" "),
    ..."https://user@example.com https://*.*.com file://host/a *://".split(" "),
    "",
  ])("%j is none", (text) => {
    expect(() => new UrlPattern(text)).toThrow(/no pattern for URLs/);
  });

  test("takes no more than the product of both lengths, whatever the path is", async () => {
    const pattern = new UrlPattern(`https://example.com/${"*a".repeat(30)}b`);
    const url = new URL(`https://example.com/${"a".repeat(50_000)}`);
    expect(await withoutHanging(() => pattern.matches(url))).toBe(false);
  });
});

describe("the policy", () => {
  const allows = (rules: UrlRules, url: string, where: Surroundings = "external"): boolean =>
    new UrlPolicy(rules, where).judgeDestination(url).allowed;

  test.each([
    "http://127.0.0.1/",
    "http://localhost:3000/",
    "http://a.localhost/",
    "http://localhost./",
    "http://2130706433/",
    "http://0/",
    "http://10.1.2.3/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.64.0.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[fd00::1]/",
    "http://[fe80::1]/",
    "http://[64:ff9b::a00:1]/",
    "http://[2002:a00:1::]/",
    "http://metadata.google.internal/",
    "file:///etc/passwd",
    "file:///workspace/a.html",
    "chrome://version",
    "view-source:https://example.com/",
    "data:text/html,hello",
    "javascript:alert(1)",
    "blob:https://example.com/1",
    "filesystem:https://example.com/temporary/a",
    "about:config",
    "ftp://example.com/",
    "not a url",
  ])("outside, %s is nowhere to go to unless somebody says so", (url) => {
    expect(allows({}, url)).toBe(false);
    expect(allows({ allow: ["*://*/**"] }, url)).toBe(false);
  });

  test("the web is allowed unless somebody says otherwise", () => {
    expect(allows({}, "https://example.com/")).toBe(true);
    expect(allows({}, "http://93.184.215.14/")).toBe(true);
    expect(allows({}, "about:blank")).toBe(true);
    expect(allows({ allow: [] }, "https://example.com/")).toBe(false);
    expect(allows({ allow: ["https://example.org"] }, "https://example.com/")).toBe(false);
  });

  test("denying wins", () => {
    const rules = { allow: ["https://*.example.com"], deny: ["https://bad.example.com"] };
    expect(allows(rules, "https://good.example.com/")).toBe(true);
    expect(allows(rules, "https://bad.example.com./")).toBe(false);
  });

  test("a private address has to be named", () => {
    expect(allows({ allow: ["http://127.0.0.1:8080/app/**"] }, "http://127.0.0.1:8080/app/")).toBe(true);
    expect(allows({ allow: ["http://127.0.0.1:8080/app/**"] }, "http://127.0.0.1:8081/app/")).toBe(false);
    expect(allows({ allow: ["http://*/**"] }, "http://127.0.0.1:8080/")).toBe(false);
    expect(allows({ allow: ["http://*.local/**"] }, "http://printer.local/")).toBe(false);
  });

  test("in a sandbox the workspace's files are allowed, and its loopback is its own", () => {
    expect(allows({}, "file:///workspace/a.html", "sandbox")).toBe(true);
    expect(allows({}, "file:///etc/passwd", "sandbox")).toBe(false);
    expect(allows({}, "file:///workspace/../proc/self/environ", "sandbox")).toBe(false);
    expect(allows({}, "http://127.0.0.1:8000/", "sandbox")).toBe(true);
    expect(allows({ allow: ["https://example.com"] }, "file:///workspace/a.html", "sandbox")).toBe(false);
  });

  test("what a page has made itself needs no permission, but is nowhere to go to", () => {
    const policy = new UrlPolicy({ allow: [] }, "external");
    expect(policy.judge("data:image/png;base64,").allowed).toBe(true);
    expect(policy.judge("blob:https://example.com/1").allowed).toBe(true);
    expect(policy.judge("chrome-extension://a/b").allowed).toBe(false);
  });

  test("of a connection the host and the port count", () => {
    const policy = new UrlPolicy(
      { allow: ["https://example.com/a/**"], deny: ["https://example.com/a/b"] },
      "external",
    );
    expect(policy.judgeConnection("example.com", "443")).toEqual({ allowed: true, mayBePrivate: false });
    const named = new UrlPolicy({ allow: ["http://10.0.0.1:80", "http://localhost"] }, "external");
    expect(named.judgeConnection("10.0.0.1", "80")).toEqual({ allowed: true, mayBePrivate: true });
    expect(named.judgeConnection("localhost", "8080")).toEqual({ allowed: true, mayBePrivate: true });
    expect(named.judgeConnection("10.0.0.1", "81").allowed).toBe(false);
    expect(policy.judgeConnection("example.org", "443").allowed).toBe(false);
    expect(new UrlPolicy({ deny: ["*://example.com"] }, "external").judgeConnection("EXAMPLE.com.", "1").allowed).toBe(
      false,
    );
    expect(new UrlPolicy({}, "external").judgeConnection("0x7f000001", "80").allowed).toBe(false);
    expect(new UrlPolicy({}, "external").judgeConnection("a/b", "80").allowed).toBe(false);
  });
});

test("only addresses of the public internet are public", () => {
  for (const address of ["1.1.1.1", "223.255.255.255", "2606:4700::1111"]) expect(isPublicAddress(address)).toBe(true);
  for (const address of ["224.0.0.1", "255.255.255.255", "198.18.0.1", "ff02::1", "::ffff:1.1.1.1", "fe80::1%lo", "x"])
    expect(isPublicAddress(address)).toBe(false);
});

test("a browser is kept from every network that a box with a private network is kept from", () => {
  const firsts = Object.values(NOT_PUBLIC_RANGES).flatMap((ranges) =>
    ranges.map((range) => range.replace(/\/\d+$/, "")),
  );
  expect(firsts).toContain("168.63.129.16");
  expect(firsts.filter(isPublicAddress)).toEqual([]);
});

describe("the proxy script says the same of connections", () => {
  const direct = (rules: UrlRules, url: string): boolean => {
    const [, script = ""] = (proxyScriptUrl(rules) ?? "").split("base64,");
    const find = new Function(`${Buffer.from(script, "base64")}; return FindProxyForURL;`)() as (url: string) => string;
    return find(url) === "DIRECT";
  };

  test.each([
    ["wss://example.com/", true],
    ["ws://example.com/", false],
    ["wss://bad.example.com/", false],
    ["wss://bad.example.com./", false],
    ["wss://good.example.com:8443/", true],
    ["wss://evilexample.com/", false],
    ["https://[2001:db8::1]:8080/", true],
    ["https://[2001:db8::1]:8081/", false],
    ["ftp://example.com/", false],
  ])("%s: %s", (url, expected) => {
    const allow = ["https://*.example.com/only/this", "https://[2001:db8:0::1]:8080"];
    expect(direct({ allow, deny: ["https://bad.example.com", "https://example.com/path"] }, url)).toBe(expected);
  });

  test("there is none without lists", () => {
    expect(proxyScriptUrl({})).toBeUndefined();
    expect(direct({ allow: [] }, "https://example.com/")).toBe(false);
  });
});
