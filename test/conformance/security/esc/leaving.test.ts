import { chownSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { identityOf } from "../../../support/identity.ts";
import { rounds } from "../../../support/rounds.ts";
import { expectOnly } from "../outcomes.ts";
import { describeBoxes } from "./boxes.ts";
import { flat } from "./facts.ts";
import { RULES } from "./host.ts";

interface LinkFacts {
  readonly links: Record<string, { readonly target: string; readonly content: string }>;
  readonly below: string;
  readonly "passwd inside": string;
  readonly write: Record<string, string>;
}

describeBoxes("ESC: leaving the workspace by name", (box) => {
  test("ESC-01 links of the codebase to the host stay links and lead to places of the sandbox", async () => {
    const { outside } = box.host;
    const facts = await box.attempt<LinkFacts>("ESC-01", { outside });
    const targets = Object.fromEntries(Object.entries(facts.links).map(([name, { target }]) => [name, target]));
    expect(targets).toEqual({
      absolute: `${outside}/secret.txt`,
      relative: `../../../../../../../..${outside}/secret.txt`,
      "outside-directory": outside,
      passwd: "/etc/passwd",
      shadow: "/etc/shadow",
      "process-1": `/proc/1/root${outside}/secret.txt`,
      itself: "itself",
    });
    const { passwd, itself, shadow, ...others } = facts.links;
    expect(passwd?.content, "the sandbox's own").toBe(facts["passwd inside"]);
    expect(passwd?.content).not.toContain("agentfense-test");
    expect(itself?.content).toBe("<ELOOP>");
    expect(["<ENOENT>", "<EACCES>"]).toContain(shadow?.content);
    expect(Object.values(others).every(({ content }) => ["<ENOENT>", "<EACCES>"].includes(content))).toBe(true);
    expect(facts.below).toBe("<ENOENT>");
    expectOnly(facts.write, "ENOENT", "EACCES", "EROFS", "EPERM", "ELOOP");
  });

  test("ESC-02 changing the attributes of a link never reaches what it points to", async () => {
    const facts = await box.attempt<Record<string, Record<string, string>>>("ESC-02", { outside: box.host.outside });
    for (const { ignored: _, ...followed } of Object.values(facts)) expectOnly(followed, "ENOENT");
  });

  test("ESC-03 a link named like its directory opens no way out", async () => {
    const { outside } = box.host;
    const nothing = { read: "<ENOENT>", "read below": "<ENOENT>", "read by path": "<ENOENT>", list: "ENOENT" };
    const sandbox = await box.another();
    expect(await sandbox.attempt("ESC-03", { outside })).toEqual({
      own: { ...nothing, create: "ENOENT", "create beside": "OK", names: ["own", "planted.txt"] },
      sub: { ...nothing, create: "ENOENT", "create beside": "OK", names: ["inner.txt", "planted.txt", "sub"] },
    });
  });

  test("ESC-04 a directory held while its name becomes a link stays where it is", async () => {
    const sandbox = await box.another();
    const facts = await sandbox.attempt<Record<string, Record<string, string>>>("ESC-04", {
      outside: box.host.outside,
    });
    for (const { moved, create, ...reads } of Object.values(facts)) {
      expect(["OK", "EXDEV"]).toContain(moved);
      expect(["OK", "ENOENT", "ESTALE"]).toContain(create);
      expectOnly(reads, "ENOENT", "<ENOENT>", "ESTALE", "<ESTALE>");
    }
  });

  test("ESC-05 a file held while its name becomes a link is opened again as itself", async () => {
    const sandbox = await box.another();
    const facts = await sandbox.attempt<Record<string, Record<string, string>>>("ESC-05", {
      outside: box.host.outside,
    });
    expect(facts).toEqual({
      "own.txt": { read: "own content", write: "OK", truncate: "OK", moved: "own" },
      "notes.txt": { read: "notes\n", write: "OK", truncate: "OK", moved: "not" },
    });
  });

  test("ESC-06 a name that flips between file and link never gives the file outside", async () => {
    const sandbox = await box.another();
    const seen = await sandbox.attempt<string[]>("ESC-06", { outside: box.host.outside, rounds: rounds(60) });
    const harmless = [
      "",
      "mine",
      "OK",
      "ENOENT",
      "<ENOENT>",
      "ELOOP",
      "<ELOOP>",
      "EEXIST",
      "ESTALE",
      "<ESTALE>",
      "EPERM",
    ];
    const own = seen.filter((answer) => !/^(mine)?(changed by the agent)*$/.test(answer));
    expect(own.filter((answer) => !harmless.includes(answer))).toEqual([]);
  });

  test("ESC-07 a copy-up below a link that took the directory's place goes nowhere", async () => {
    const { outside } = box.host;
    const sandbox = await box.another();
    const { "through name": read, ...others } = await sandbox.attempt<Record<string, string>>("ESC-07", { outside });
    expect(read).toBe("<ENOENT>");
    // The file that is held lives on without a name, as an unlinked file does; nothing else is possible.
    expectOnly(others, "OK", "ENOENT", "ESTALE", "EPERM", "EACCES", "EXDEV");
    expect(others["write by name"]).toBe("ENOENT");
    expect(others.create).not.toBe("OK");

    const delta = box.host.newDelta();
    const planted = join(delta, "tree/work");
    mkdirSync(planted, { recursive: true });
    symlinkSync(outside, join(planted, "deep"));
    const { uid, gid } = identityOf(box.kind.server);
    for (const path of [delta, join(delta, "tree"), planted]) chownSync(path, uid, gid);
    const second = await box.another({ workspaces: [{ lowers: [box.host.codebase], delta, rules: RULES }] });
    const write = "echo changed > /workspace/work/deep/secret.txt; cat /workspace/work/deep/secret.txt; echo $?";
    const { stdout } = await second.exec({ command: write });
    expect(stdout, "a link in the delta is a link inside").toBe("1\n");
  });

  test("ESC-14 above the workspace there is the sandbox's own root", async () => {
    const facts = await box.attempt<{ openat2: Record<string, string> } & Record<string, unknown>>("ESC-14");
    const { openat2, "is root": isRoot, ...rest } = facts;
    expectOnly(flat(isRoot), "true");
    expect(rest).toEqual({ "same names": true, held: "ENOENT" });
    expectOnly(openat2, "EXDEV", "the workspace");
  });
});
