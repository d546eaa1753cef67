import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { runAs } from "../../../support/filtered-sandboxes.ts";
import { type As, identityOf, reasonAgainst } from "../../../support/identity.ts";
import { expectOnly } from "../outcomes.ts";
import { WAYS, WITH_ALLOWED } from "./ways.ts";

const run = promisify(execFile);
const PROGRAM = new URL("attempts.ts", import.meta.url).pathname;

interface Facts {
  /** Of each way, in the order of the table: how it ended, and whose names were in events. */
  readonly ways: readonly { readonly outcome: string; readonly names: readonly string[] }[];
  readonly rebound: readonly string[];
  readonly denied: readonly string[];
  readonly there: Record<string, string>;
  readonly named: string;
  readonly many: number;
  readonly meanwhile: string;
  readonly said: string;
  readonly after: readonly string[];
  readonly seen: readonly string[];
  readonly questions: readonly string[];
}

for (const as of ["root", "user"] satisfies As[]) {
  const reason = reasonAgainst(as);
  const title = `NET: the filtered network of a box of ${as}, and ${WAYS.length} ways round it`;
  describe.skipIf(reason !== undefined)(`${title}${reason ?? ""}`, () => {
    let facts: Facts;
    beforeAll(async () => {
      const { stdout } = await run("setpriv", runAs(identityOf(as), PROGRAM), { maxBuffer: 2 ** 24 });
      facts = JSON.parse(stdout) as Facts;
    });

    const waysOf = (id: string) =>
      WITH_ALLOWED.map((way, index) => ({ ...way, ...facts.ways[index]! })).filter((way) => way.id === id);
    const expectEnds = (id: string): void => {
      const wrong = waysOf(id).filter(({ ends, outcome }) => !ends.includes(outcome));
      expect(wrong.map(({ way, outcome, ends }) => `${way}: ${outcome}, not ${ends.join(" or ")}`)).toEqual([]);
    };
    const expectEvents = (id: string): void => {
      const silent = waysOf(id).filter(({ told, names }) => told !== undefined && !names.includes(told));
      expect(silent.map(({ way }) => way)).toEqual([]);
    };

    test("NET-01 an address in any notation reaches nothing", () => {
      // Where the server listens at all addresses, one that is no name's is cut at once.
      expectEnds("NET-01");
    });

    test("NET-02 a listed name reaches no address of this machine or its networks, nor one that it changes to", () => {
      expectEnds("NET-02");
      expectEvents("NET-02");
      expect(facts.rebound).toEqual(["200", "403"]);
      expect(facts.denied).toContain("rebinding.test");
    });

    test("NET-03 questions for names are answered from the list, and none leaves", () => {
      expectEnds("NET-03");
      expectEvents("NET-03");
      expect(facts.questions.filter((name) => !/^(?:own\d+|listed|rebinding)\.test$/.test(name))).toEqual([]);
    });

    test("NET-04 a connection to a listed host carries the name of that host, or ends", () => {
      expectEnds("NET-04");
      expectEvents("NET-04");
    });

    test("NET-05 a request for another host, or one that can be read in two ways, is refused", () => {
      expectEnds("NET-05");
      expectEvents("NET-05");
      expect(facts.seen.filter((request) => !/^good \/(?:own|redirect|meanwhile|after|again)\b/.test(request))).toEqual(
        [],
      );
    });

    test("NET-06 no other socket, option or message leads out", () => {
      expectEnds("NET-06");
    });

    test("NET-07 connections are bounded, and another sandbox does not notice", () => {
      expect(facts.many).toBe(512);
      expect(facts.meanwhile).toBe("good GET /meanwhile");
    });

    test("NET-08 addresses and names of one sandbox lead nowhere in another", () => {
      expectOnly(facts.there, "ECONNREFUSED", "cut");
      expect(facts.named).toBe("code 3, 0 answers");
    });

    test("NET-11 a connection that a new list does not allow is cut, and what it allows works at once", () => {
      expect(facts.said).toBe("up\ncut\n");
      expect(facts.after).toEqual(["6\n", "good GET /after0\n", "good GET /again0\n"]);
    });
  });
}
