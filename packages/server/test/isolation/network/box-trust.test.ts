import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { type As, identityOf, reasonAgainst } from "../../../../../test/support/identity.ts";

const run = promisify(execFile);
const PROGRAM = new URL("box-trust-process.ts", import.meta.url).pathname;

for (const as of ["root", "user"] satisfies As[]) {
  const reason = reasonAgainst(as);
  test.skipIf(reason !== undefined)(
    `programs in a box of ${as} believe the sandbox's authority and no other, with variables and without${reason ?? ""}`,
    async () => {
      const { stdout } = await run(process.execPath, [PROGRAM], { ...identityOf(as), maxBuffer: 1 << 24 });
      const { clients, variables, written, log } = JSON.parse(stdout);
      expect(Object.keys(clients)).toEqual(expect.arrayContaining(["curl", "curl without variables"]));
      for (const [name, outcome] of Object.entries(clients)) {
        const refused = name === "git" ? "1\n" : "refused";
        expect(outcome, name).toEqual({ own: name === "git" ? "h\n" : "hello", stranger: refused });
      }
      expect(variables).toBe("/run/agentfense/ca-bundle.pem /the/user's /run/agentfense/ca.pem\n");
      expect(written).toBe("-----END CERTIFICATE-----\n".repeat(2));
      expect(log).toEqual([]);
    },
  );
}
