import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, type TestContext, test } from "vitest";
import { runAs } from "../../../../../test/support/filtered-sandboxes.ts";
import { type As, identityOf, reasonAgainst } from "../../../../../test/support/identity.ts";
import { CLIENTS, FETCHERS, OPENED_CLIENTS, SECRETS } from "./client-table.ts";

const run = promisify(execFile);
const PROGRAM = new URL("clients-process.ts", import.meta.url).pathname;
const sentence = (host: string) => `${host}: ${host} is not on this sandbox's list; ask your user for --allow ${host}`;

interface Skipped {
  readonly skipped: string;
}

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface Facts {
  readonly clients: Record<
    string,
    Skipped | { readonly allowed: Ran; readonly refused: { fails: boolean; told: boolean } }
  >;
  readonly opened: Record<string, Skipped | Ran>;
  readonly fetchers: Record<string, Skipped | { readonly unopened: Ran; readonly opened: Ran; readonly key: string }>;
  /** What arrived at hosts of secrets, by client. */
  readonly sent: Record<string, string | undefined>;
  readonly usual: Record<string, unknown>;
}

for (const as of ["root", "user"] satisfies As[]) {
  const reason = reasonAgainst(as);
  describe.skipIf(reason !== undefined)(
    `in a box of ${as}, programs that know nothing of a filter${reason ?? ""}`,
    () => {
      let facts: Facts;
      beforeAll(async () => {
        const { stdout } = await run("setpriv", runAs(identityOf(as), PROGRAM), { maxBuffer: 2 ** 24 });
        facts = JSON.parse(stdout) as Facts;
      });

      /** What became of a program, or the end of the test with the reason why nothing did. */
      const found = <Fact extends object>(
        fact: Fact | Skipped | undefined,
        context: TestContext,
        name: string,
      ): Fact => {
        if (fact === undefined) throw new Error(`${name} was not tried`);
        if (!("skipped" in fact)) return fact;
        console.log(`${name} is not tried in a box of ${as}: ${fact.skipped}`);
        return context.skip(fact.skipped);
      };

      test.for(CLIENTS)(
        "$name works with the hosts that it needs, and fails with an event at others",
        (client, context) => {
          const { allowed, refused } = found(facts.clients[client.name], context, client.name);
          expect(allowed.out, allowed.err).toSatisfy((out: string) => out.endsWith(client.gives));
          expect(refused).toEqual({ fails: true, told: true });
        },
      );

      test.for(FETCHERS)(
        "$name gets what is listed, the sentence by HTTP, and the value of a key to its host",
        ({ name }, context) => {
          const { unopened, opened, key } = found(facts.fetchers[name], context, name);
          const refused = "GET /v2/x at seen.test is not on this sandbox's list; ask your user for it";
          expect(unopened.out.split("\n"), unopened.err).toEqual([`good GET /${name}`, refused, "nothing"]);
          expect(opened.out, opened.err).toBe(`good GET /${name}`);
          expect(key).toBe(SECRETS.API_KEY.value);
        },
      );

      test.for(OPENED_CLIENTS)(
        "$name works where TLS is opened, and its password is put in on the way",
        (client, context) => {
          const { out, err } = found(facts.opened[client.name], context, client.name);
          expect(out, err).toSatisfy((text: string) => text.endsWith(client.gives));
          const { value } = SECRETS[client.token];
          expect(facts.sent[client.name]).toBe(`Basic ${Buffer.from(`user:${value}`).toString("base64")}`);
        },
      );

      test("reach listed hosts and no others, by name, by port and in any amount", () => {
        expect(facts.usual).toEqual({
          curl: [
            "0 good GET /a",
            "0 good GET /b",
            "0 good GET /c",
            "0 good GET /d",
            "6 ", // the name does not exist
            "6 ",
            "6 ",
            "7 ", // the connection is refused
          ],
          getent: ["1", "3", "3", "0", "2"],
          addresses: [
            "good.test AF_UNSPEC  ['198']",
            "evil.test AF_UNSPEC  unknown",
            "good.test AF_UNSPEC ADDRCONFIG ['198']",
            "evil.test AF_UNSPEC ADDRCONFIG unknown",
            "good.test AF_INET  ['198']",
            "evil.test AF_INET  unknown",
            "good.test AF_INET ADDRCONFIG ['198']",
            "evil.test AF_INET ADDRCONFIG unknown",
            "good.test AF_INET6  unknown",
            "evil.test AF_INET6  unknown",
            "good.test AF_INET6 ADDRCONFIG unknown",
            "evil.test AF_INET6 ADDRCONFIG unknown",
          ],
          tcp: [expect.stringMatching(/^(?:SSH-2\.0-.*|hello)$/)], // whoever is there
          large: ["20000000", expect.stringContaining('"bytes":5000000')],
          git: ["GET /repository.git/info/refs?service=git-upload-pack"],
          allowed: expect.arrayContaining(["good.test:22", "good.test:443", "good.test:80", "sub.wild.test:443"]),
          denied: expect.arrayContaining([sentence("evil.test"), sentence("wild.test")]),
          questions: expect.not.arrayContaining(["evil.test", "wild.test"]),
        });
      });
    },
  );
}
