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

test.skipIf(reason !== undefined)(
  `what an agent has shut is merged all the same${reason ? ` (skipped: ${reason})` : ""}`,
  () => {
    const source = join(import.meta.dirname, "../../../src");
    const code = `
    import { mkdtempSync, mkdirSync, writeFileSync, chmodSync, readFileSync, statSync } from "node:fs";
    import { mergeDeltas } from ${JSON.stringify(`${source}/isolation/merge/deltas.ts`)};
    import { removeTree } from ${JSON.stringify(`${source}/isolation/filesystem/remove-tree.ts`)};
    import { aTickOfFileTimes } from ${JSON.stringify(join(import.meta.dirname, "../../../../../test/support/eventually.ts"))};
    const home = mkdtempSync("/tmp/agentfense-own-rights-");
    const lines = "1\\n2\\n3\\n4\\n5\\n";
    mkdirSync(home + "/lower/dir", { recursive: true });
    writeFileSync(home + "/lower/dir/text", lines);
    await aTickOfFileTimes();
    const rules = [{ pattern: "**/*", permission: "write" }];
    const deltas = ["a", "b"].map((name) => ({ name, delta: home + "/" + name, lower: home + "/lower", rules }));
    for (const { name, delta } of deltas) {
      mkdirSync(delta + "/tree/dir", { recursive: true });
      mkdirSync(delta + "/tree/new-" + name);
      writeFileSync(delta + "/tree/dir/text", lines.replace(name === "a" ? "1" : "5", name));
      writeFileSync(delta + "/tree/dir/same", "of both");
      writeFileSync(delta + "/tree/new-" + name + "/file", "new");
      chmodSync(delta + "/tree/dir/text", 0);
      chmodSync(delta + "/tree/dir/same", 0);
      chmodSync(delta + "/tree/new-" + name, 0);
      chmodSync(delta + "/tree/dir", 0);
    }
    const report = await mergeDeltas({ deltas, into: home + "/lower", intoName: "lower" });
    const mode = (path) => (statSync(home + "/lower/" + path).mode & 0o777).toString(8);
    const modes = ["dir", "new-a"].map(mode);
    for (const path of ["dir", "new-a"]) chmodSync(home + "/lower/" + path, 0o700);
    const result = { changes: report.changes.map(({ outcome, path }) => outcome + " " + path), conflicts: report.conflicts, modes, text: mode("dir/text") };
    chmodSync(home + "/lower/dir/text", 0o600);
    result.content = readFileSync(home + "/lower/dir/text", "latin1") + readFileSync(home + "/lower/new-a/file", "latin1");
    await removeTree(home);
    process.stdout.write(JSON.stringify(result));`;
    const args = ["--input-type=module", "-e", code];
    const output = execFileSync(process.execPath, args, { ...identityOf("user"), cwd: import.meta.dirname });
    expect(JSON.parse(output.toString())).toEqual({
      changes: ["/dir", "/dir/same", "/dir/text", "/new-a", "/new-a/file", "/new-b", "/new-b/file"].map(
        (path) => `merged ${path}`,
      ),
      conflicts: [],
      modes: ["0", "0"],
      text: "0",
      content: "a\n2\n3\n4\nb\nnew",
    });
  },
);
