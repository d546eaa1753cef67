import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { type As, identityOf, reasonAgainst } from "../../../../../test/support/identity.ts";

const run = promisify(execFile);
const PROGRAM = new URL("listeners-process.ts", import.meta.url).pathname;
const BOXES = "50";

describe("in the network of a box, from outside,", () => {
  for (const as of ["root", "user"] satisfies As[]) {
    const reason = reasonAgainst(as);
    test.skipIf(reason !== undefined)(
      `the server of ${as} listens where the box cannot, and leaves nothing behind${reason ?? ""}`,
      async () => {
        const { uid, gid } = identityOf(as);
        const become = [`--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", process.execPath, PROGRAM, BOXES];
        const { stdout } = await run("setpriv", become);
        expect(JSON.parse(stdout)).toEqual({
          reached: [
            "198.18.0.9:443 198.18.0.9 443",
            "198.19.255.254:443 198.19.255.254 443",
            "198.18.7.7:5432 198.18.7.7 5432",
            "198.18.7.8:5432 ConnectionRefusedError 111",
            "198.18.0.9:80 ConnectionRefusedError 111",
            "1.1.1.1:443 OSError 101",
            "10.0.0.1:443 OSError 101",
          ],
          own: ["a port of its own done", "every address of a port of ours 98", "443 13", "443 shared 13", "53 13"],
          files: "nameserver 198.18.0.53\nhosts: files dns\n",
          devices: "lo\n",
          capabilities: "CapEff:\t0000000000000000\n2\n",
          again: "198.18.0.9 443\n",
          leftOver: [],
        });
      },
    );
  }
});
