import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { AT, O, RENAME, S } from "../../../support/constants.ts";
import type { Call } from "../../../support/probe.ts";
import { link } from "../../../support/tree.ts";
import type { TestWorkspace } from "../../../support/workspace.ts";
import { creationsAt } from "../attacks.ts";
import { ABSENT, HIDDEN_NAMES, HIDDEN_PATHS } from "../codebase.ts";
import { expectOnly, type Outcomes, outcomesOfTwins } from "../outcomes.ts";
import { OWN, OWN_DIRECTORY, openTwins, withDirectory } from "../twins.ts";

/** Answers that tell that something is there, or what it is. None may come from a hidden name. */
const TELLING = ["OK", "EEXIST", "ENOTEMPTY", "ENOTDIR", "EISDIR", "EADDRINUSE", "ELOOP", "EXDEV"];

function expectNothingTold(outcomes: Outcomes): void {
  expect(Object.entries(outcomes).filter(([, outcome]) => TELLING.includes(outcome))).toEqual([]);
}

describeAttack("DISC: creating at a hidden name", (arena) => {
  /** Every row at every hidden path: EACCES, whether something is there or not; what the agent has stays. */
  const expectRefused = async (rows: (path: string, twin: TestWorkspace) => readonly Call[]): Promise<void> => {
    const twins = await openTwins(arena);
    const table = (twin: TestWorkspace) => HIDDEN_PATHS.flatMap((path) => rows(twin.at(path), twin));
    expectOnly(await outcomesOfTwins(arena.probe, twins, table), "EACCES");
    for (const twin of Object.values(twins)) {
      expect(await arena.probe.text(twin.at(OWN))).toBe("mine\n");
      expect(await arena.probe.names(twin.at(OWN_DIRECTORY))).toEqual(["child.txt"]);
      expect(twin.deltaPaths().filter((path) => path.includes(".env"))).toEqual([]);
    }
  };

  test("DISC-18 mkdir is refused, with and without a slash", () =>
    expectRefused((path) => [
      ["mkdirat", path],
      ["mkdirat", `${path}/`],
      ["mkdirat", `${path}//`],
    ]));

  test("DISC-19 O_CREAT with O_EXCL is refused and never says that something exists", () =>
    expectRefused((path) =>
      [O.RDONLY, O.WRONLY, O.RDWR].flatMap((access): Call[] => [
        ["tryOpen", path, access | O.CREAT | O.EXCL],
        ["tryOpen", path, access | O.CREAT | O.EXCL | O.NOFOLLOW],
        ["tryOpen2", path, { flags: access | O.CREAT | O.EXCL, mode: 0o600 }],
      ]),
    ));

  test("DISC-20 O_CREAT without O_EXCL and with O_TRUNC is refused and keeps the content", () =>
    expectRefused((path) =>
      [O.RDONLY, O.WRONLY, O.RDWR, O.NEITHER].flatMap((access): Call[] => [
        ["tryOpen", path, access | O.CREAT],
        ["tryOpen", path, access | O.CREAT | O.TRUNC],
        ["tryOpen", path, access | O.CREAT | O.APPEND],
        ["tryOpen", path, access | O.CREAT | O.NOFOLLOW | O.NONBLOCK],
      ]),
    ));

  test("DISC-21 symlink, link, mknod, mkfifo and bind are refused", () =>
    expectRefused((path, twin) => [
      ["symlinkat", "anywhere", path],
      ["linkat", twin.at(OWN), path],
      ["linkat", twin.at("/work/notes.txt"), path],
      ["mknodat", path, S.IFREG | 0o644],
      ["mknodat", path, 0o644],
      ["mknodat", path, S.IFIFO | 0o644],
      ["mknodat", path, S.IFSOCK | 0o644],
      ["tryBind", path],
    ]));

  test("DISC-23 rename of an own file or directory onto it is refused", () =>
    expectRefused((path, twin) => [
      ["renameat2", twin.at(OWN), path],
      ["renameat2", twin.at(OWN_DIRECTORY), path],
      ["renameat2", twin.at("/work/notes.txt"), path],
    ]));

  test("DISC-24 rename without replacing is refused and never says that something exists", () =>
    expectRefused((path, twin) => [
      ["renameat2", twin.at(OWN), path, RENAME.NOREPLACE],
      ["renameat2", twin.at(OWN_DIRECTORY), path, RENAME.NOREPLACE],
    ]));

  test("DISC-23 rename of what the agent may not move onto it tells nothing either", async () => {
    const twins = await openTwins(arena);
    const outcomes = await outcomesOfTwins(arena.probe, twins, (twin) =>
      HIDDEN_PATHS.flatMap((path): Call[] => [
        ["renameat2", twin.at("/README.md"), twin.at(path)],
        ["renameat2", twin.at("/docs/guide.md"), twin.at(path)],
        ["renameat2", twin.at("/work/shown.txt"), twin.at(path)],
        ["renameat2", twin.at("/work/kept.txt"), twin.at(path), RENAME.NOREPLACE],
        ["linkat", twin.at("/README.md"), twin.at(path)],
      ]),
    );
    expectOnly(outcomes, "EACCES");
  });

  test("DISC-23 rename of a codebase directory onto it answers the same, there or not", async () => {
    const twins = await openTwins(arena);
    const outcomes = await outcomesOfTwins(arena.probe, twins, (twin) =>
      // The kernel itself refuses to move a directory into itself.
      HIDDEN_PATHS.filter((path) => !/^\/(src|work\/sub)\//.test(path)).flatMap((path): Call[] => [
        ["renameat2", twin.at("/work/sub"), twin.at(path)],
        ["renameat2", twin.at("/src"), twin.at(path), RENAME.NOREPLACE],
      ]),
    );
    expectOnly(outcomes, "EACCES", "EXDEV");
  });

  test("DISC-18 the kernel's own answers to odd spellings are the same, there or not", async () => {
    const twins = await openTwins(arena);
    await outcomesOfTwins(arena.probe, twins, (twin) =>
      HIDDEN_PATHS.flatMap((path): Call[] => [
        ["tryOpen", `${twin.at(path)}/`, O.WRONLY | O.CREAT],
        ["tryOpen", twin.at(path), O.RDONLY | O.CREAT | O.DIRECTORY],
        ["symlinkat", "anywhere", `${twin.at(path)}/`],
        ["mknodat", `${twin.at(path)}/`, S.IFREG | 0o644],
        ["linkat", twin.at(OWN), `${twin.at(path)}/`],
        ["renameat2", twin.at(OWN), `${twin.at(path)}/`],
        ["symlinkat", "", twin.at(path)],
        ["mknodat", twin.at(path), S.IFCHR | 0o644, 0x103],
        ["mknodat", twin.at(path), S.IFDIR | 0o755],
      ]),
    );
  });

  test("DISC-18 a directory opened before is no way around", async () => {
    const { probe } = arena;
    const twins = await openTwins(arena);
    for (const twin of Object.values(twins)) {
      await withDirectory(probe, twin.at("/work"), async (work) => {
        const errnos = await probe.errnos(
          [...HIDDEN_NAMES, ABSENT, "sub/.env", "../.env", "../src/.env.d"].flatMap((path): Call[] => [
            ["mkdirat", { at: work, path }],
            ["tryOpen", { at: work, path }, O.WRONLY | O.CREAT],
            ["symlinkat", "x", { at: work, path }],
            ["linkat", { at: work, path: "own.txt" }, { at: work, path }],
            ["renameat2", { at: work, path: "own.txt" }, { at: work, path }],
            ["renameat2", { at: work, path: "own-directory" }, { at: work, path }, RENAME.NOREPLACE],
            ["mknodat", { at: work, path }, S.IFIFO | 0o600],
          ]),
        );
        expect(new Set(errnos)).toEqual(new Set(["EACCES"]));
      });
    }
  });

  test("DISC-19 on a mount without a delta creation is refused alike, there or not", async () => {
    const twins = await openTwins(arena, { delta: false });
    const outcomes = await outcomesOfTwins(arena.probe, twins, (twin) =>
      HIDDEN_PATHS.flatMap((path) => creationsAt(twin.at(path), twin.at("/work/notes.txt"), twin.at("/work/sub"))),
    );
    expectNothingTold(
      Object.fromEntries(Object.entries(outcomes).filter(([label]) => !/^renameat2 \/work\/sub /.test(label))),
    );
  });

  test("DISC-54 below a hidden directory nothing can be created, because nothing is there", async () => {
    const twins = await openTwins(arena);
    const parents = HIDDEN_PATHS.filter((path) => path !== "/secrets/absent");
    const outcomes = await outcomesOfTwins(arena.probe, twins, (twin) =>
      parents.flatMap((path) =>
        ["/new", "/inner.txt", "/deeper/new"].flatMap((child) =>
          creationsAt(twin.at(path + child), twin.at(OWN), twin.at(OWN_DIRECTORY)),
        ),
      ),
    );
    expectOnly(outcomes, "ENOENT");
  });

  test("DISC-55 an unnamed file cannot be made in a hidden directory", async () => {
    const twins = await openTwins(arena);
    const outcomes = await outcomesOfTwins(arena.probe, twins, (twin) =>
      HIDDEN_PATHS.flatMap((path): Call[] => [
        ["tryOpen", twin.at(path), O.TMPFILE | O.RDWR],
        ["tryOpen", twin.at(path), O.TMPFILE | O.WRONLY | O.EXCL],
      ]),
    );
    expectOnly(outcomes, "ENOENT");
  });

  test("DISC-55 an unnamed file cannot be linked to a hidden name", async () => {
    const { probe } = arena;
    const twins = await openTwins(arena);
    const answers = async (twin: TestWorkspace) => {
      const { ret: fd, errno } = await probe.call("openat", twin.at("/work"), O.TMPFILE | O.RDWR);
      if (fd < 0) return errno;
      const errnos = await probe.errnos(
        HIDDEN_PATHS.flatMap((path): Call[] => [
          ["linkat", `/proc/self/fd/${fd}`, twin.at(path), AT.SYMLINK_FOLLOW],
          ["linkat", { at: fd, path: "" }, twin.at(path), AT.EMPTY_PATH],
        ]),
      );
      await probe.call("close", fd);
      expect(errnos.filter((name) => !["EACCES", "ENOENT"].includes(name))).toEqual([]);
      return errnos;
    };
    const there = await answers(twins.there);
    expect(there).toEqual(await answers(twins.absent));
    if (typeof there === "string") expect(there).toBe("EOPNOTSUPP");
  });

  test("DISC-56 creating through a link to a hidden name is refused as at the name itself", async () => {
    const { probe } = arena;
    const names = [...HIDDEN_NAMES, ABSENT];
    const links = Object.fromEntries(names.map((name) => [`to${name}`, link(`../work/${name}`)]));
    const twins = await openTwins(arena, { extra: { links } });
    const made = await outcomesOfTwins(probe, twins, (twin) =>
      names.map((name) => ["symlinkat", name, twin.at(`/work/mine${name}`)] as const),
    );
    expectOnly(made, "OK");
    const through = await outcomesOfTwins(probe, twins, (twin) =>
      names.flatMap((name) =>
        [`/links/to${name}`, `/work/mine${name}`].flatMap((path): Call[] => [
          ["tryOpen", twin.at(path), O.WRONLY | O.CREAT],
          ["tryOpen", twin.at(path), O.RDWR | O.CREAT | O.TRUNC],
          ["tryOpen", twin.at(path), O.RDONLY | O.CREAT],
          ["writeFile", twin.at(path), "planted"],
        ]),
      ),
    );
    expectOnly(through, "EACCES");
  });
});
