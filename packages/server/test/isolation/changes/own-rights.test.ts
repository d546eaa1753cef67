import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { identityOf, reasonAgainst } from "../../../../../test/support/identity.ts";

const reason = reasonAgainst("user");

// What a mode hides from an ordinary user it must not hide from his review.
test.skipIf(reason !== undefined)(
  `changes in directories without permission bits are listed and shown${reason ? ` (skipped: ${reason})` : ""}`,
  () => {
    const source = join(import.meta.dirname, "../../../src");
    const code = `
    import { mkdtempSync, mkdirSync, writeFileSync, chmodSync, statSync } from "node:fs";
    import { listChanges } from ${JSON.stringify(`${source}/isolation/changes/list.ts`)};
    import { removeTree } from ${JSON.stringify(`${source}/isolation/filesystem/remove-tree.ts`)};
    const home = mkdtempSync("/tmp/agentfense-own-rights-");
    const hidden = home + "/delta/tree/shut/half/open";
    mkdirSync(hidden, { recursive: true });
    mkdirSync(home + "/lower");
    writeFileSync(hidden + "/planted", "x");
    chmodSync(hidden, 0o400);
    chmodSync(home + "/delta/tree/shut/half", 0o600);
    chmodSync(home + "/delta/tree/shut", 0);
    const paths = [];
    for await (const change of listChanges({ delta: home + "/delta", lowers: [home + "/lower"] })) paths.push(change.path);
    const mode = (statSync(home + "/delta/tree/shut").mode & 0o777).toString(8);
    await removeTree(home);
    process.stdout.write(JSON.stringify({ paths, mode }));`;
    const args = ["--input-type=module", "-e", code];
    const output = execFileSync(process.execPath, args, { ...identityOf("user"), cwd: import.meta.dirname });
    expect(JSON.parse(output.toString())).toEqual({
      paths: ["/shut", "/shut/half", "/shut/half/open", "/shut/half/open/planted"],
      mode: "0",
    });
  },
);
