import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { ALICE, refusal, SandboxesFixture, type SandboxesFixtureOptions, sandboxRequest } from "./fixture.ts";

// Real mounts and processes: what a sandbox writes must arrive, and nothing else.

const EVERYTHING = [{ pattern: "**/*", permission: "write" }] as const;

async function open(options: SandboxesFixtureOptions = {}): Promise<SandboxesFixture> {
  return await SandboxesFixture.open({ runtime: "bwrap", ...options });
}

/** Resolves when the sandbox has written to the file, in its delta. */
async function written(place: SandboxesFixture, id: string, name: string): Promise<void> {
  const path = join(place.deltaDirectory, id, "tree", name);
  const size = (): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  await eventually(async () => expect(await size()).toBeGreaterThan(0));
}

describe("after a command", () => {
  test("what it wrote is in the codebase, as one version, and no change any more", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "one\n", "src/b.txt": "two\n", "old.txt": "old\n" });
    const id = await place.running();
    const answer = await place.run(
      id,
      "echo more >>a.txt; mkdir -p new/deep; echo x >new/deep/c; rm old.txt; ln -s a.txt link; chmod 755 src/b.txt",
    );
    expect(answer).toMatchObject({ exitCode: 0, syncedVersion: 2, syncProblems: [] });
    expect(await place.tree()).toEqual({
      "a.txt": "one\nmore\n",
      link: "-> a.txt",
      new: "/",
      "new/deep": "/",
      "new/deep/c": "x\n",
      src: "/",
      "src/b.txt": "two\n",
    });
    expect((await place.sandboxes.changes(ALICE, id, { pageSize: 0, pageToken: "" })).items).toEqual([]);
    const { version, changes } = await place.codebases.getVersion(ALICE, place.codebaseId, 2);
    expect(version).toMatchObject({ origin: "sync", sandboxId: id, conflicts: [] });
    expect(changes.map(({ kind, path }) => `${kind} ${path}`)).toContain("deleted old.txt");
    expect(await place.run(id, "cat a.txt new/deep/c link; ls")).toMatchObject({
      syncedVersion: 0,
      stdout: "one\nmore\nx\none\nmore\na.txt\nlink\nnew\nsrc\n",
    });
    expect((await place.events("sync_completed")).map(({ data }) => data)).toMatchObject([
      { version: 2, conflicts: 0 },
    ]);
  });

  test("that only looked there is no version", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "one\n" });
    const id = await place.running();
    expect(await place.run(id, "cat a.txt; : >>a.txt; touch -c nothing; chmod 644 a.txt")).toMatchObject({
      stdout: "one\n",
      syncedVersion: 0,
      syncProblems: [],
    });
    expect((await place.codebases.get(ALICE, place.codebaseId)).version).toBe(1);
  });

  test("another sandbox sees at once what it wrote", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "one\n", "d/x": "x\n" });
    const [writer, reader] = [await place.running(), await place.running()];
    expect((await place.run(reader, "cat a.txt; ls d; cat missing")).stdout).toBe("one\nx\n");
    await place.run(writer, "echo two >a.txt; echo y >d/y; echo now >missing; rm d/x");
    expect((await place.run(reader, "cat a.txt; ls d; cat missing")).stdout).toBe("two\ny\nnow\n");
  });

  test("an upload is seen at once, and wins over what was written before it", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "one\n" });
    const id = await place.running();
    await place.run(id, "echo sandbox >a.txt");
    await place.upload({ "a.txt": "uploaded\n" });
    expect((await place.run(id, "cat a.txt")).stdout).toBe("uploaded\n");
    expect((await place.run(id, "echo other >b.txt")).syncedVersion).toBe(4);
    expect(await place.tree()).toEqual({ "a.txt": "uploaded\n", "b.txt": "other\n" });
  });

  test("two sandboxes write different files and both are kept", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n", "b.txt": "b\n" });
    const [one, two] = [await place.running(), await place.running()];
    await Promise.all([
      place.run(one, "for i in 1 2 3; do echo one$i >>a.txt; done"),
      place.run(two, "for i in 1 2 3; do echo two$i >>b.txt; done"),
    ]);
    expect(await place.tree()).toEqual({ "a.txt": "a\none1\none2\none3\n", "b.txt": "b\ntwo1\ntwo2\ntwo3\n" });
  });

  test("the last one to write a file wins as a whole, and the overwritten work is on record", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n" });
    const [slow, quick] = [await place.running(), await place.running()];
    const writing = place.run(slow, "echo slow >a.txt; until [ -e go ]; do sleep 0.05; done");
    await written(place, slow, "a.txt");
    expect(await place.run(quick, "echo quick >a.txt")).toMatchObject({ syncedVersion: 2 });
    await place.upload({ go: "" });
    expect(await writing).toMatchObject({ syncedVersion: 4 });
    expect(await place.tree()).toEqual({ "a.txt": "slow\n", go: "" });
    const { version } = await place.codebases.getVersion(ALICE, place.codebaseId, 4);
    expect(version.conflicts).toEqual([{ path: "a.txt", replacedVersion: 2, replacedSandboxId: quick }]);
    expect((await place.events("sync_conflict"))[0]?.data).toEqual({
      path: "/workspace/a.txt",
      version: 4,
      replaced_version: 2,
      replaced_sandbox: quick,
    });
    // The old delta is empty: it reverts nothing.
    await place.run(quick, "echo newer >a.txt");
    await place.run(slow, "echo b >b.txt");
    expect(await place.tree()).toEqual({ "a.txt": "newer\n", "b.txt": "b\n", go: "" });
    expect((await place.run(slow, "cat a.txt")).stdout).toBe("newer\n");
  });

  test("what background processes write comes with the next command, or when the sandbox stops", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n" });
    const id = await place.running();
    const session = await place.sandboxes.createSession(ALICE, id, { shell: "", env: {}, workdir: "" });
    const waits = "(while [ ! -e /tmp/go ]; do sleep 0.01; done; echo late >late.txt; sleep 60) &";
    await place.sandboxes.sessionExec(ALICE, session.id, { command: waits });
    expect(await place.tree()).toEqual({ "a.txt": "a\n" });
    // It shares its /tmp with the other commands of the sandbox; this one writes nothing by itself.
    void place.run(id, "touch /tmp/go; sleep 60").catch(() => {});
    await written(place, id, "late.txt");
    await place.sandboxes.stop(ALICE, id);
    expect(await place.tree()).toEqual({ "a.txt": "a\n", "late.txt": "late\n" });
  });

  test("a command that was killed for time has written what it has written", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n" });
    const id = await place.running();
    expect(await place.run(id, "echo b >b.txt; sleep 60", { timeoutMs: 4000 })).toMatchObject({
      timedOut: true,
      syncedVersion: 2,
    });
    expect(await place.tree()).toEqual({ "a.txt": "a\n", "b.txt": "b\n" });
  });
});

describe("rules at the time of the sync", () => {
  test("decide: what may no longer be written stays in the sandbox", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n", "b.txt": "b\n", "secret.txt": "s\n" });
    const id = await place.running({ sync: "manual" });
    await place.run(id, "echo x >a.txt; echo y >b.txt; rm secret.txt");
    await place.sandboxes.updatePermissions(ALICE, id, {
      rules: [...EVERYTHING, { pattern: "/a.txt", permission: "read" }, { pattern: "/secret.txt", permission: "none" }],
      preset: "",
    });
    const { version, outcomes } = await place.sandboxes.apply(ALICE, id, { paths: [], dryRun: false });
    expect(version).toBe(2);
    expect(outcomes.map(({ change, applied, reason }) => [change.path, applied, reason])).toEqual([
      ["/a.txt", false, "level read"],
      ["/b.txt", true, ""],
    ]);
    expect(await place.tree()).toEqual({ "a.txt": "a\n", "b.txt": "y\n", "secret.txt": "s\n" });
    const refused = (await place.events("sync_refused")).map(({ data }) => data.path);
    expect(refused).toEqual(expect.arrayContaining(["/workspace/a.txt", "/workspace/secret.txt"]));
  });

  test("a directory that holds what is protected stays, with all of that", async () => {
    await using place = await open();
    await place.upload({ "d/open.txt": "1\n", "d/secret/key": "k\n", "e/x": "x\n" });
    const id = await place.running({
      rules: [...EVERYTHING, { pattern: "/d/secret/**", permission: "none" }],
    });
    const answer = await place.run(id, "rm -rf d e; ls");
    expect(answer.stdout).toBe("");
    expect(await place.tree()).toEqual({ d: "/", "d/secret": "/", "d/secret/key": "k\n" });
    // What the agent cannot see, no answer tells; the audit log does.
    expect(answer.syncProblems).toEqual([]);
    expect((await place.events("sync_refused")).map(({ data }) => data.path)).toEqual(["/workspace/d"]);
    expect((await place.run(id, "echo file >d")).syncProblems).toEqual([
      "/workspace/d: the codebase keeps what is there",
    ]);
    expect((await place.run(id, "cat d")).stdout).toBe("file\n");
    expect(Object.keys(await place.tree())).toEqual(["d", "d/secret", "d/secret/key"]);
  });

  test("no link, fifo or change of kind is a way around them", async () => {
    await using place = await open();
    await place.upload({ "ro.txt": "ro\n", "d/x": "x\n", "f.txt": "f\n" });
    const id = await place.running({ rules: [...EVERYTHING, { pattern: "/ro.txt", permission: "read" }] });
    const answer = await place.run(
      id,
      "ln -s /etc out; mkfifo pipe; rm -r d; echo file >d; rm f.txt; mkdir f.txt; echo in >f.txt/in; ln ro.txt hard; mv ro.txt gone; ln -s ro.txt soft; echo x >soft",
    );
    expect(await place.tree()).toEqual({
      d: "file\n",
      "f.txt": "/",
      "f.txt/in": "in\n",
      out: "-> /etc",
      "ro.txt": "ro\n",
      soft: "-> ro.txt",
    });
    expect(answer.syncProblems.some((problem) => problem.startsWith("/workspace/pipe: "))).toBe(true);
    // The link is replaced, nothing lands in its target.
    await place.run(id, "rm out; mkdir out; echo passwd >out/passwd");
    expect(await place.tree()).toMatchObject({ out: "/", "out/passwd": "passwd\n" });
  });

  test("renames arrive as such", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n", "src/one.ts": "1\n", "src/two.ts": "2\n" });
    const id = await place.running();
    await place.run(id, "mv a.txt b.txt; mv src lib");
    expect(await place.tree()).toEqual({ "b.txt": "a\n", lib: "/", "lib/one.ts": "1\n", "lib/two.ts": "2\n" });
  });
});

describe("names that a codebase cannot hold", () => {
  test("stay in the sandbox and are told", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n" });
    const id = await place.running();
    const answer = await place.run(
      id,
      "echo 1 >'back\\slash'; echo 2 >$'\\xff'; echo 3 >good; mkdir d; echo 4 >$'d/\\t'",
    );
    expect(answer.syncProblems.length).toBe(3);
    expect(await place.tree()).toEqual({ "a.txt": "a\n", d: "/", good: "3\n" });
    expect((await place.run(id, "cat 'back\\slash' $'\\xff' $'d/\\t'")).stdout).toBe("1\n2\n4\n");
  });
});

describe("a sandbox that does not sync by itself", () => {
  test("keeps its changes until they are applied, and shows them", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "one\n", "b.txt": "b\n", "c.txt": "c\n" });
    const id = await place.running({ sync: "manual" });
    expect(await place.run(id, "echo two >>a.txt; rm b.txt; mkdir d; echo n >d/new; mv c.txt moved.txt")).toMatchObject(
      {
        syncedVersion: 0,
      },
    );
    expect(Object.keys(await place.tree())).toEqual(["a.txt", "b.txt", "c.txt"]);
    const list = (await place.sandboxes.changes(ALICE, id, { pageSize: 0, pageToken: "" })).items;
    expect(list).toEqual([
      { kind: "modified", path: "/a.txt", oldPath: "", type: "file", size: 8, sensitive: false },
      { kind: "deleted", path: "/b.txt", oldPath: "", type: "file", size: 2, sensitive: false },
      { kind: "added", path: "/d", oldPath: "", type: "directory", size: 0, sensitive: false },
      { kind: "added", path: "/d/new", oldPath: "", type: "file", size: 2, sensitive: false },
      { kind: "renamed", path: "/moved.txt", oldPath: "/c.txt", type: "file", size: 2, sensitive: false },
    ]);
    const paged: string[] = [];
    for (let pageToken = ""; ; ) {
      const page = await place.sandboxes.changes(ALICE, id, { pageSize: 2, pageToken });
      paged.push(...page.items.map(({ path }) => path));
      if (page.nextPageToken === "") break;
      pageToken = page.nextPageToken;
    }
    expect(paged).toEqual(list.map(({ path }) => path));
    const diffs = await Array.fromAsync(place.sandboxes.diff(ALICE, id, { paths: ["/a.txt"], patch: false }));
    expect(diffs).toMatchObject([{ change: { path: "/a.txt" }, binary: false }]);
    expect(diffs[0]?.unified).toContain("+two");
    expect(
      (await Array.fromAsync(place.sandboxes.diff(ALICE, id, { paths: [], patch: false }))).map(
        ({ change }) => change.path,
      ),
    ).toEqual(list.map(({ path }) => path));
  });

  test("a patch comes in pieces where it is long, and git makes the same of the codebase", async () => {
    await using place = await open();
    const files = { "a.txt": "a\n", "moved.txt": "moves\n", "old/b.txt": "b\n", "old/deep/c.txt": "c\n" };
    await place.upload(files);
    const id = await place.running({ sync: "manual" });
    await place.run(id, "rm -r old; mv moved.txt to.txt; head -c 2500000 /dev/urandom > large; echo two >> a.txt");
    const pieces = await Array.fromAsync(place.sandboxes.diff(ALICE, id, { paths: [], patch: true }));
    expect(Math.max(...pieces.map(({ unified }) => unified.length))).toBeLessThan(2 << 20);
    expect(pieces.filter(({ more }) => !more).map(({ change }) => `${change.kind} ${change.path}`)).toEqual([
      "modified /a.txt",
      "added /large",
      "deleted /old",
      "deleted /old/b.txt",
      "deleted /old/deep",
      "deleted /old/deep/c.txt",
      "renamed /to.txt",
    ]);
    const copy = mkdtempSync(join(tmpdir(), "agentfense-patch-"));
    onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(copy, name)), { recursive: true });
      writeFileSync(join(copy, name), content);
    }
    const input = pieces.map(({ unified }) => unified).join("");
    execFileSync("git", ["apply", "-"], { cwd: copy, input, stdio: "pipe" });
    const sums = "find . -type f | sort | xargs sha256sum";
    expect(execFileSync("sh", ["-c", sums], { cwd: copy, encoding: "utf8" })).toBe((await place.run(id, sums)).stdout);
  });

  test("applies and discards by path, and an unknown path does nothing", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n", "b.txt": "b\n" });
    const id = await place.running({ sync: "manual" });
    await place.run(id, "echo x >a.txt; echo y >b.txt; mkdir d; echo z >d/z");
    const missing = { code: "FILE_NOT_FOUND" };
    expect(await refusal(place.sandboxes.apply(ALICE, id, { paths: ["a.txt", "nope"], dryRun: false }))).toMatchObject(
      missing,
    );
    expect(await refusal(place.sandboxes.discard(ALICE, id, ["a.txt", "nope"]))).toMatchObject(missing);
    expect(
      await refusal(Array.fromAsync(place.sandboxes.diff(ALICE, id, { paths: ["nope"], patch: false }))),
    ).toMatchObject(missing);
    expect((await refusal(place.sandboxes.apply(ALICE, id, { paths: ["../x"], dryRun: false }))).code).toBe(
      "INVALID_ARGUMENT",
    );
    expect(await place.tree()).toEqual({ "a.txt": "a\n", "b.txt": "b\n" });

    const rehearsal = await place.sandboxes.apply(ALICE, id, { paths: [], dryRun: true });
    expect(rehearsal.version).toBe(0);
    expect(rehearsal.outcomes.every(({ applied }) => applied)).toBe(true);
    expect(await place.tree()).toEqual({ "a.txt": "a\n", "b.txt": "b\n" });

    const { version } = await place.sandboxes.apply(ALICE, id, { paths: ["/a.txt"], dryRun: false });
    expect(version).toBe(2);
    expect(await place.tree()).toEqual({ "a.txt": "x\n", "b.txt": "b\n" });
    const discarded = await place.sandboxes.discard(ALICE, id, ["/b.txt", "/d"]);
    expect(discarded.map(({ path }) => path)).toEqual(["/b.txt", "/d", "/d/z"]);
    expect((await place.run(id, "cat a.txt b.txt; ls")).stdout).toBe("x\nb\na.txt\nb.txt\n");
    expect((await place.sandboxes.changes(ALICE, id, { pageSize: 0, pageToken: "" })).items).toEqual([]);
  });

  test("marks what a machine may run unasked in lists, diffs and versions, and holds it back when asked to", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n" });
    const id = await place.running({ sync: "manual" });
    await place.run(id, "echo x >a.txt; echo '{}' >package.json; ln -s /etc/passwd out");
    const list = async () => (await place.sandboxes.changes(ALICE, id, { pageSize: 0, pageToken: "" })).items;
    const marks = (await list()).map(({ path, sensitive }) => [path, sensitive]);
    expect(marks).toEqual([
      ["/a.txt", false],
      ["/out", true],
      ["/package.json", true],
    ]);
    const diffs = await Array.fromAsync(place.sandboxes.diff(ALICE, id, { paths: ["/package.json"], patch: false }));
    expect(diffs.map(({ change }) => change.sensitive)).toEqual([true]);
    const rehearsal = await place.sandboxes.apply(ALICE, id, { paths: [], dryRun: true, holdExecutables: true });
    const { version, outcomes } = await place.sandboxes.apply(ALICE, id, {
      paths: [],
      dryRun: false,
      holdExecutables: true,
    });
    expect(outcomes).toEqual(rehearsal.outcomes);
    expect(outcomes.map(({ change, applied, reason }) => [change.path, applied, reason])).toEqual([
      ["/a.txt", true, ""],
      ["/out", false, "held back: the host may run or trust it unasked"],
      ["/package.json", false, "held back: the host may run or trust it unasked"],
    ]);
    expect(version).toBe(2);
    expect(await place.tree()).toEqual({ "a.txt": "x\n" });
    expect((await list()).map(({ path }) => path)).toEqual(["/out", "/package.json"]);
  });

  test("applies and discards when it is stopped, too", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n", "b.txt": "b\n" });
    const id = await place.running({ sync: "manual" });
    await place.run(id, "echo x >a.txt; echo y >b.txt");
    await place.sandboxes.stop(ALICE, id);
    expect((await place.sandboxes.apply(ALICE, id, { paths: ["a.txt"], dryRun: false })).version).toBe(2);
    expect((await place.sandboxes.discard(ALICE, id, [])).map(({ path }) => path)).toEqual(["/b.txt"]);
    expect((await place.sandboxes.changes(ALICE, id, { pageSize: 0, pageToken: "" })).items).toEqual([]);
    expect(await place.tree()).toEqual({ "a.txt": "x\n", "b.txt": "b\n" });
  });

  test("is refused when it may not sync at all", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n" });
    await place.upload({ "a.txt": "b\n" });
    const never = await place.running({ sync: "never" });
    const pinned = await place.running({ codebaseVersion: 1 });
    expect((await place.run(pinned, "cat a.txt; echo x >a.txt")).stdout).toBe("a\n");
    await place.upload({ "a.txt": "c\n" });
    expect((await place.run(pinned, "cat a.txt")).stdout).toBe("x\n");
    for (const id of [never, pinned]) {
      expect((await refusal(place.sandboxes.apply(ALICE, id, { paths: [], dryRun: false }))).code).toBe("SYNC_REFUSED");
    }
    expect(await place.tree()).toEqual({ "a.txt": "c\n" });
    expect(
      (
        await refusal(
          place.sandboxes.create(ALICE, sandboxRequest({ codebaseId: place.codebaseId, codebaseVersion: 99 })),
        )
      ).code,
    ).toBe("VERSION_NOT_FOUND");
  });
});

describe("many at once", () => {
  test("end with what the last one wrote, whole, and all see the same", async () => {
    await using place = await open();
    await place.upload({ shared: "0\n", uploaded: "0\n" });
    const ids = await Promise.all([1, 2, 3].map(() => place.running()));
    const rounds = [1, 2, 3, 4];
    await Promise.all([
      ...ids.map(async (id, who) => {
        for (const round of rounds) {
          const text = `${who} ${round} `.repeat(500);
          const answer = await place.run(
            id,
            `echo '${text}' >shared; echo ${round} >>own${who}; mkdir -p d${round}; echo >d${round}/${who}`,
          );
          expect(answer).toMatchObject({ exitCode: 0, syncProblems: [] });
        }
      }),
      (async () => {
        for (const round of rounds) await place.upload({ uploaded: `${round}\n`, [`up${round}`]: "u\n" });
      })(),
    ]);
    const tree = await place.tree();
    for (const who of [0, 1, 2]) expect(tree[`own${who}`]).toBe("1\n2\n3\n4\n");
    expect(tree.uploaded).toBe("4\n");
    const [winner = ""] = /^\d \d /.exec(tree.shared ?? "") ?? [];
    expect(tree.shared).toBe(`${winner.repeat(500)}\n`);
    expect(Object.keys(tree).filter((path) => path.startsWith("d")).length).toBe(4 + 4 * 3);
    for (const id of ids) {
      expect((await place.run(id, "cat shared own0 own1 own2 uploaded; ls")).stdout).toBe(
        [tree.shared, tree.own0, tree.own1, tree.own2, tree.uploaded].join("") +
          `${Object.keys(tree)
            .filter((path) => !path.includes("/"))
            .sort()
            .join("\n")}\n`,
      );
      expect((await place.sandboxes.changes(ALICE, id, { pageSize: 0, pageToken: "" })).items).toEqual([]);
    }
    expect(place.log).toEqual([]);
  });
});

describe("after a restart", () => {
  test("a running sandbox is back with what it had changed", async () => {
    await using place = await open();
    await place.upload({ "a.txt": "a\n" });
    const id = await place.running({ sync: "manual" });
    await place.run(id, "echo x >a.txt; echo y >b.txt");
    await place.reopen();
    expect((await place.sandboxes.get(ALICE, id)).status).toBe("RUNNING");
    expect((await place.run(id, "cat a.txt b.txt")).stdout).toBe("x\ny\n");
    expect(await place.tree()).toEqual({ "a.txt": "a\n" });
  });
});
