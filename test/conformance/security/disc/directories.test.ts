import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { O, RENAME } from "../../../support/constants.ts";
import type { Call } from "../../../support/probe.ts";
import type { Tree } from "../../../support/tree.ts";
import type { TestWorkspace } from "../../../support/workspace.ts";
import { ALL_CANARIES, CANARY, HIDDEN, HIDDEN_NAMES, RULES } from "../codebase.ts";
import { expectOnly, outcomesOfTwins, type Twins } from "../outcomes.ts";

/** Names that a translation of globs to regular expressions, or a careless log, gets wrong. */
const ODD_NAMES = [
  "line\nfeed",
  "para\u2028graph",
  "back\\slash",
  "[class]",
  "{a,b}",
  "star*",
  "que?stion",
  "a b",
  "...",
];

describeAttack("DISC: directories that hold hidden entries", (arena) => {
  /** /work/hollow holds only hidden entries in one twin and nothing in the other; /work/full has a visible file too. */
  const openHollow = async (): Promise<Twins> => {
    const lower = (secret: Tree): Tree => ({
      "hollow.ro": { ...secret },
      work: {
        hollow: { ...secret },
        nested:
          secret === HIDDEN ? { ...secret, ".env.more": { ".env": CANARY.hidden, "plain.txt": CANARY.hidden } } : {},
        full: { "visible.txt": "visible", ...secret },
        "notes.txt": "notes\n",
      },
    });
    return {
      there: await arena.open({ lower: lower(HIDDEN), rules: RULES }),
      absent: await arena.open({ lower: lower({}), rules: RULES }),
    };
  };

  const expectHollow = async (twin: TestWorkspace, path: string): Promise<void> => {
    expect(await arena.probe.names(twin.at(path))).toEqual([]);
    const errnos = await arena.probe.errnos(
      HIDDEN_NAMES.map((name) => ["fstatat", twin.at(`${path}/${name}`)] as const),
    );
    expect(new Set(errnos)).toEqual(new Set(["ENOENT"]));
    const created = await arena.probe.errnos(
      HIDDEN_NAMES.map((name) => ["mkdirat", twin.at(`${path}/${name}`)] as const),
    );
    expect(new Set(created)).toEqual(new Set(["EACCES"]));
  };

  test("DISC-31 rmdir of a directory with hidden entries only succeeds like for an empty one", async () => {
    const { probe } = arena;
    const twins = await openHollow();
    const outcomes = await outcomesOfTwins(probe, twins, (twin) => [
      ["rmdir", twin.at("/work/hollow")],
      ["rmdir", twin.at("/work/nested")],
    ]);
    expectOnly(outcomes, "OK");
    for (const twin of Object.values(twins)) {
      expect(await probe.names(twin.at("/work"))).toEqual(["full", "notes.txt"]);
      await twin.remount();
      expect(await probe.names(twin.at("/work"))).toEqual(["full", "notes.txt"]);
      expect(await probe.errnoOf("mkdirat", twin.at("/work/hollow"))).toBe("OK");
      await expectHollow(twin, "/work/hollow");
    }
  });

  test("DISC-31 rmdir of a read-only directory with hidden entries only is refused like for an empty one", async () => {
    const twins = await openHollow();
    const outcomes = await outcomesOfTwins(arena.probe, twins, (twin) => [
      ["rmdir", twin.at("/hollow.ro")],
      ["unlinkat", twin.at("/hollow.ro")],
    ]);
    expect(Object.values(outcomes)[0]).toBe("EACCES");
  });

  test("DISC-31 a directory is empty when its visible files are gone", async () => {
    const { probe } = arena;
    const twins = await openHollow();
    const outcomes = await outcomesOfTwins(probe, twins, (twin) => [
      ["rmdir", twin.at("/work/full")],
      ["unlinkat", twin.at("/work/full/visible.txt")],
      ["rmdir", twin.at("/work/full")],
      ["mkdirat", twin.at("/work/full")],
    ]);
    expect(Object.values(outcomes)).toEqual(["ENOTEMPTY", "OK", "OK", "OK"]);
    for (const twin of Object.values(twins)) await expectHollow(twin, "/work/full");
  });

  test("DISC-32 an own directory replaces one with hidden entries only, like an empty one", async () => {
    const { probe } = arena;
    const twins = await openHollow();
    const outcomes = await outcomesOfTwins(probe, twins, (twin) => [
      ["mkdirat", twin.at("/work/mine")],
      ["writeFile", twin.at("/work/mine/child.txt"), "mine"],
      ["renameat2", twin.at("/work/mine"), twin.at("/work/hollow"), RENAME.NOREPLACE],
      ["renameat2", twin.at("/work/notes.txt"), twin.at("/work/hollow")],
      ["renameat2", twin.at("/work/mine"), twin.at("/work/full")],
      ["renameat2", twin.at("/work/mine"), twin.at("/work/hollow")],
    ]);
    expect(Object.values(outcomes)).toEqual(["OK", "OK", "EEXIST", "EISDIR", "ENOTEMPTY", "OK"]);
    for (const twin of Object.values(twins)) {
      for (const again of [false, true]) {
        if (again) await twin.remount();
        expect(await probe.names(twin.at("/work/hollow"))).toEqual(["child.txt"]);
        const errnos = await probe.errnos(
          HIDDEN_NAMES.flatMap((name): Call[] => [
            ["fstatat", twin.at(`/work/hollow/${name}`)],
            ["tryOpen", twin.at(`/work/hollow/${name}`), O.RDONLY],
          ]),
        );
        expect(new Set(errnos)).toEqual(new Set(["ENOENT"]));
      }
    }
  });

  test("DISC-32 exchanging with it answers like with an empty one", async () => {
    const twins = await openHollow();
    const outcomes = await outcomesOfTwins(arena.probe, twins, (twin) => [
      ["mkdirat", twin.at("/work/mine")],
      ["renameat2", twin.at("/work/mine"), twin.at("/work/hollow"), RENAME.EXCHANGE],
      ["renameat2", twin.at("/work/hollow"), twin.at("/work/notes.txt"), RENAME.EXCHANGE],
    ]);
    expect(Object.values(outcomes)).toEqual(["OK", "EXDEV", "EXDEV"]);
  });

  test("DISC-33 a directory of the codebase answers EXDEV, whatever is hidden in it", async () => {
    const { probe } = arena;
    const twins = await openHollow();
    const outcomes = await outcomesOfTwins(probe, twins, (twin) =>
      ["hollow", "nested", "full"].flatMap((name): Call[] => [
        ["renameat2", twin.at(`/work/${name}`), twin.at("/work/moved")],
        ["renameat2", twin.at(`/work/${name}`), twin.at("/work/moved"), RENAME.NOREPLACE],
      ]),
    );
    expectOnly(outcomes, "EXDEV");
    for (const twin of Object.values(twins)) {
      expect(await probe.errnoOf("fstatat", twin.at("/work/moved"))).toBe("ENOENT");
      expect(await probe.names(twin.at("/work"))).toEqual(["full", "hollow", "nested", "notes.txt"]);
    }
  });

  test("DISC-33 mv copies what is visible and leaves the rest unseen", async () => {
    const { probe } = arena;
    const twins = await openHollow();
    for (const twin of Object.values(twins)) {
      const moved = await probe.call("run", "mv", [twin.at("/work/full"), twin.at("/work/moved")]);
      expect({ status: moved.status, stderr: moved.stderr }).toEqual({ status: 0, stderr: "" });
      expect(await probe.names(twin.at("/work/moved"))).toEqual(["visible.txt"]);
      expect(await probe.errnoOf("fstatat", twin.at("/work/full"))).toBe("ENOENT");
      expect((await probe.call("scan", twin.mountPoint, [CANARY.hidden, ".env"])).found).toEqual([]);
    }
  });

  test("DISC-34 no odd name of a directory uncovers what is hidden below it", async () => {
    const { probe } = arena;
    const twins = await openHollow();
    for (const twin of Object.values(twins)) {
      for (const name of ODD_NAMES) {
        const errnos = await probe.errnos([
          ["renameat2", twin.at("/work/full"), twin.at(`/work/${name}`)],
          ["mkdirat", twin.at(`/work/${name}`)],
          ["writeFile", twin.at(`/work/${name}/.env`), "planted"],
          ["mkdirat", twin.at(`/work/${name}/.env.d`)],
          ["renameat2", twin.at("/work/notes.txt"), twin.at(`/work/${name}/.env`)],
          ["fstatat", twin.at(`/work/${name}/.env`)],
          ["mkdirat", twin.at(`/work/${name}/sub`)],
          ["writeFile", twin.at(`/work/${name}/sub/.env`), "planted"],
        ]);
        expect(errnos, name).toEqual(["EXDEV", "OK", "EACCES", "EACCES", "EACCES", "ENOENT", "OK", "EACCES"]);
      }
      const moved = await probe.call("run", "mv", [twin.at("/work/full"), twin.at("/work/line\nbreak")]);
      expect(moved.status).toBe(0);
      expect((await probe.call("scan", twin.mountPoint, [...ALL_CANARIES, ".env"])).found).toEqual([]);
    }
  });

  /** Twins whose hidden entries the agent made itself, before the rules hid them; at one twin it removed them in time. */
  const openTwinsOfOwn = async (): Promise<Twins> => {
    const open = () => arena.open({ rules: [{ pattern: "/**", permission: "write" }], lower: { work: {} } });
    const twins = { there: await open(), absent: await open() };
    for (const twin of Object.values(twins)) {
      const made = await arena.probe.errnos([
        ["mkdirat", twin.at("/work/own")],
        ["mkdirat", twin.at("/work/own/shown")],
        ["mkdirat", twin.at("/work/own/.env.d")],
        ["writeFile", twin.at("/work/own/.env.d/inner.txt"), CANARY.hidden],
        ["writeFile", twin.at("/work/own/.env"), CANARY.hidden],
        ["mkdirat", twin.at("/work/own/shown/.env.d")],
      ]);
      expect(new Set(made)).toEqual(new Set(["OK"]));
    }
    const { absent } = twins;
    await arena.probe.errnos([
      ["unlinkat", absent.at("/work/own/.env.d/inner.txt")],
      ["rmdir", absent.at("/work/own/.env.d")],
      ["unlinkat", absent.at("/work/own/.env")],
      ["rmdir", absent.at("/work/own/shown/.env.d")],
    ]);
    for (const twin of Object.values(twins)) await twin.updateRules(RULES);
    return twins;
  };

  test("DISC-35 the link count of an own directory does not count what a change of rules has hidden in it", async () => {
    const twins = await openTwinsOfOwn();
    await outcomesOfTwins(arena.probe, twins, (twin) => [
      ["fstatat", twin.at("/work/own")],
      ["fstatat", twin.at("/work/own/shown")],
      ["rmdir", twin.at("/work/own/shown")],
      ["fstatat", twin.at("/work/own")],
    ]);
  });

  test("DISC-33 an own directory moves alike, whatever a change of rules has hidden in it", async () => {
    const { probe } = arena;
    const twins = await openTwinsOfOwn();
    // Elsewhere the names that are hidden here would be shown.
    const elsewhere = { pattern: "/work/open/**", permission: "write", priority: 200 } as const;
    for (const twin of Object.values(twins)) await twin.updateRules([...RULES, elsewhere]);
    const outcomes = await outcomesOfTwins(probe, twins, (twin) => [
      ["renameat2", twin.at("/work/own"), twin.at("/work/moved")],
      ["renameat2", twin.at("/work/moved/shown"), twin.at("/work/moved/again"), RENAME.NOREPLACE],
      ["mkdirat", twin.at("/work/other")],
      ["renameat2", twin.at("/work/moved"), twin.at("/work/other"), RENAME.EXCHANGE],
      ["mkdirat", twin.at("/work/open")],
      ["renameat2", twin.at("/work/other"), twin.at("/work/open/own")],
      ["fstatat", twin.at("/work/open/own/.env")],
      ["mkdirat", twin.at("/work/open/own/.env.d")],
    ]);
    expect(Object.values(outcomes)).toEqual([...Array(6).fill("OK"), "ENOENT", "OK"]);
    // Nothing of it comes back, and nothing is lost to whoever owns the delta.
    for (const twin of Object.values(twins)) {
      await twin.remount([...RULES, elsewhere]);
      expect(await probe.names(twin.at("/work/open/own"))).toEqual([".env.d", "again"]);
      expect((await probe.call("scan", twin.mountPoint, [CANARY.hidden])).found).toEqual([]);
    }
    expect(twins.there.deltaPathsHolding(CANARY.hidden)).toHaveLength(2);
  });
});
