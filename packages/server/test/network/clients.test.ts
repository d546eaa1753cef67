import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { runAs } from "../../../../test/support/filtered-sandboxes.ts";
import { type As, identityOf, reasonAgainst } from "../../../../test/support/identity.ts";

const run = promisify(execFile);
const PROGRAM = new URL("clients-process.ts", import.meta.url).pathname;
const sentence = (host: string) => `${host}: ${host} is not on this sandbox's list; ask your user for --allow ${host}`;

describe("programs that know nothing of a filter", () => {
  for (const as of ["root", "user"] satisfies As[]) {
    const reason = reasonAgainst(as);
    test.skipIf(reason !== undefined)(
      `reach listed hosts and no others, in a box of ${as}${reason ?? ""}`,
      { timeout: 60_000 },
      async () => {
        const { stdout } = await run("setpriv", runAs(identityOf(as), PROGRAM));
        expect(JSON.parse(stdout)).toEqual({
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
          urllib: [
            "https://good.test/urllib good GET /urllib",
            "http://good.test/urllib good GET /urllib",
            "https://evil.test/urllib [Errno -2] Name or service not known",
          ],
          fetch: [
            "https://good.test/fetch good GET /fetch",
            "https://sub.wild.test/fetch good GET /fetch",
            "https://evil.test/fetch ENOTFOUND",
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
          tcp: ["hello"],
          large: ["20000000", expect.stringContaining('"bytes":5000000')],
          git: ["GET /repository.git/info/refs?service=git-upload-pack"],
          allowed: ["good.test:22", "good.test:443", "good.test:80", "sub.wild.test:443"],
          denied: [sentence("evil.test"), sentence("wild.test")],
          questions: ["good.test", "sub.wild.test"],
        });
      },
    );
  }
});
