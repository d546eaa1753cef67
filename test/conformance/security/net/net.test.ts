import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { runAs } from "../../../support/filtered-sandboxes.ts";
import { type As, identityOf, reasonAgainst } from "../../../support/identity.ts";
import { expectOnly } from "../outcomes.ts";

const run = promisify(execFile);
const PROGRAM = new URL("attempts.ts", import.meta.url).pathname;

type Outcomes = Record<string, string>;

interface Facts {
  readonly literals: Outcomes;
  readonly forbidden: Outcomes;
  readonly rebound: readonly Outcomes[];
  readonly questions: {
    readonly listed: Outcomes;
    readonly unlisted: Outcomes;
    readonly long: string;
    readonly "over TCP": string;
    readonly elsewhere: Outcomes;
  };
  readonly passedOn: readonly string[];
  readonly hellos: Outcomes;
  readonly requests: Outcomes;
  readonly ways: Record<"sockets" | "datagrams" | "ports of ours" | "options", Outcomes> & { readonly netlink: string };
  readonly denied: readonly string[];
  readonly there: Outcomes;
  readonly many: { readonly answered: number };
  readonly meanwhile: string;
  readonly said: string;
  readonly after: readonly string[];
  readonly evil: readonly string[];
  readonly good: readonly string[];
}

for (const as of ["root", "user"] satisfies As[]) {
  const reason = reasonAgainst(as);
  describe.skipIf(reason !== undefined)(`NET: the filtered network of a box of ${as}${reason ?? ""}`, () => {
    let facts: Facts;
    beforeAll(async () => {
      const { stdout } = await run("setpriv", runAs(identityOf(as), PROGRAM), { maxBuffer: 2 ** 24 });
      facts = JSON.parse(stdout) as Facts;
    });

    test("NET-01 an address in any notation reaches nothing", () => {
      // Where the server listens at all addresses, one that is no name's is cut at once.
      expectOnly(facts.literals, "ENETUNREACH", "ECONNREFUSED", "cut");
    });

    test("NET-02 a listed name reaches no address of this machine or its networks, nor one that it changes to", () => {
      expectOnly(facts.forbidden, "HTTP/1.1 403 Forbidden");
      expect(facts.rebound).toEqual([
        { "rebinding.test": "HTTP/1.1 200 OK" },
        { "rebinding.test": "HTTP/1.1 403 Forbidden" },
      ]);
      expect(facts.denied).toEqual(expect.arrayContaining([...Object.keys(facts.forbidden), "rebinding.test"]));
    });

    test("NET-03 questions for names are answered from the list, and none leaves", () => {
      const { A, ...others } = facts.questions.listed;
      expect(A).toBe("code 0, 1 answers");
      expectOnly(others, "code 0, 0 answers");
      const { long, "over TCP": overTcp } = facts.questions;
      expectOnly({ ...facts.questions.unlisted, long, overTcp }, "code 3, 0 answers");
      expectOnly(facts.questions.elsewhere, "ENETUNREACH", "ECONNREFUSED");
      expect(facts.passedOn).toEqual([]);
      expect(facts.denied).toContain("c2vjcmv0.evil.test");
    });

    test("NET-04 a connection to a listed host carries the name of that host, or ends", () => {
      const { "own name": own, "no TLS": plain, ...others } = facts.hellos;
      expect(own).toBe("HTTP/1.1 200 OK");
      expect(plain?.startsWith("\u0015\u0003")).toBe(true); // an alert
      expectOnly(others, "cut");
    });

    test("NET-05 a request for another host, or one that can be read in two ways, is refused", () => {
      const { "its own": own, ...others } = facts.requests;
      expect(own).toBe("HTTP/1.1 200 OK");
      for (const [title, answer] of Object.entries(others)) expect(answer, title).toMatch(/^HTTP\/1\.1 4\d\d /);
      expect(facts.good).not.toContain("/x");
    });

    test("NET-06 no other socket, option or message leads out", () => {
      const { sockets, datagrams, options, netlink } = facts.ways;
      expectOnly(sockets, "EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT");
      expectOnly(datagrams, "ENETUNREACH", "ECONNREFUSED");
      expectOnly(facts.ways["ports of ours"], "EACCES");
      expectOnly(options, "ENETUNREACH", "EPERM", "timed out");
      expect(netlink).toBe("EPERM");
      expect(facts.evil).toEqual([]);
    });

    test("NET-07 connections are bounded, and another sandbox does not notice", () => {
      expect(facts.many.answered).toBe(512);
      expect(facts.meanwhile).toBe("good GET /meanwhile");
    });

    test("NET-08 addresses of one sandbox's names lead nowhere in another", () => {
      expectOnly(facts.there, "ECONNREFUSED", "cut");
    });

    test("NET-11 a connection that a new list does not allow is cut, and what it allows works at once", () => {
      expect(facts.said).toBe("up\ncut\n");
      expect(facts.after).toEqual(["6\n", "good GET /after0\n", "good GET /again0\n"]);
    });
  });
}
