import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { O, OK, RENAME } from "../../../support/constants.ts";
import { decodeName } from "../../../support/names.ts";
import type { Call } from "../../../support/probe.ts";
import type { Tree } from "../../../support/tree.ts";
import { looksAt, opens, usesOf } from "../attacks.ts";
import { CANARY, HIDDEN, RULES } from "../codebase.ts";
import { expectOnly, outcomesOf, outcomesOfTwins } from "../outcomes.ts";
import { OWN, openTwins } from "../twins.ts";

const bytes = (...values: number[]): string => decodeName(Uint8Array.from(values));

describeAttack("DISC: names", (arena) => {
  test("DISC-41 another case is another name", async () => {
    const twins = await openTwins(arena);
    const variants = [
      "/.ENV",
      "/.Env",
      "/work/.eNV",
      "/SECRETS/key.pem",
      "/Secrets",
      "/secrets/KEY.PEM",
      "/src/.env.D",
    ];
    expectOnly(
      await outcomesOfTwins(arena.probe, twins, (twin) => variants.flatMap((path) => usesOf(twin.at(path)))),
      "ENOENT",
    );
  });

  test("DISC-42 the bytes decide: another Unicode form never opens the hidden file", async () => {
    const { probe } = arena;
    const composed = "caf\u00e9.txt";
    const decomposed = "cafe\u0301.txt";
    const lookalikes = [
      "c\u0430f\u00e9.txt",
      "\uff43af\u00e9.txt",
      "\u200bcaf\u00e9.txt",
      "caf\u00e9.txt\u200d",
      "CAF\u00c9.txt",
    ];
    const rules = [
      { pattern: "/**", permission: "read" },
      { pattern: "**/caf\u00e9*", permission: "none", priority: 1 },
      { pattern: "**/stra\u00dfe", permission: "none", priority: 1 },
    ] as const;
    const hidden = { [composed]: CANARY.hidden, "stra\u00dfe": CANARY.hidden };
    const there = await arena.open({ lower: { ...hidden, [decomposed]: "another file" }, rules });
    expect(await probe.names(there.mountPoint)).toEqual([decomposed]);
    expect(await probe.text(there.at(`/${decomposed}`))).toBe("another file");
    const others = [composed, "strasse", "STRASSE", "stra\u00dfe", ...lookalikes];
    expectOnly(
      await outcomesOf(
        probe,
        there,
        others.flatMap((name) => opens(there.at(`/${name}`))),
      ),
      "ENOENT",
    );
  });

  test("DISC-43 names that are not UTF-8 stay apart and stay under the rules", async () => {
    const { probe } = arena;
    const plain: Tree = {
      [bytes(0x61, 0xff)]: "one",
      [bytes(0x61, 0xfe)]: "two",
      "a\ufffd": "three",
      [bytes(0x61, 0xc3)]: "four",
      [bytes(0x61, 0xc3, 0xa9)]: "five",
      [bytes(0xf0, 0x9f, 0x98)]: "six",
    };
    const hidden: Tree = {
      [`${bytes(0xff)}.key`]: CANARY.hidden,
      [`.env${bytes(0xff)}`]: CANARY.hidden,
      [`.env${bytes(0xc0, 0xaf)}`]: CANARY.hidden,
    };
    const rules = [...RULES, { pattern: "**/*.key", permission: "none", priority: 100 } as const];
    const workspace = await arena.open({ lower: { raw: { ...plain, ...hidden }, work: {} }, rules });
    expect(await probe.names(workspace.at("/raw"))).toEqual(Object.keys(plain).sort());
    for (const [name, content] of Object.entries(plain)) {
      expect(await probe.text(workspace.at(`/raw/${name}`)), JSON.stringify(name)).toBe(content);
    }
    const absent = [...Object.keys(hidden), bytes(0x61, 0xfd), bytes(0x61), `${bytes(0xfe)}.key`];
    expectOnly(
      await outcomesOf(
        probe,
        workspace,
        absent.flatMap((name) => opens(workspace.at(`/raw/${name}`))),
      ),
      "ENOENT",
    );

    const made = [bytes(0x6e, 0xff), bytes(0x6e, 0xfe), bytes(0x6e, 0xc3, 0x28)];
    for (const [index, name] of made.entries()) {
      expect(await probe.errnoOf("writeFile", workspace.at(`/work/${name}`), `content ${index}`)).toBe("OK");
    }
    await workspace.remount();
    expect(await probe.names(workspace.at("/work"))).toEqual(made.toSorted());
    for (const [index, name] of made.entries()) {
      expect(await probe.text(workspace.at(`/work/${name}`))).toBe(`content ${index}`);
    }
    for (const name of [`${bytes(0xfe)}.key`, `.env${bytes(0x80)}`]) {
      expect(await probe.errnoOf("writeFile", workspace.at(`/work/${name}`), "planted")).toBe("EACCES");
    }
  });

  test("DISC-44 names with meaning for JavaScript, globs or terminals are plain names", async () => {
    const { probe } = arena;
    const names = [
      "__proto__",
      "constructor",
      "toString",
      "hasOwnProperty",
      "*",
      "**",
      "?",
      "[a-z]",
      "[!a]",
      "{x,y}",
      "back\\slash",
      "!not",
      "#hash",
      " space ",
      "-rf",
      "tab\t",
      "bell\u0007",
      "esc\u001b[31m",
      "del\u007f",
      "line\nfeed",
      "return\r",
      "\u2028",
      "\ud83d\ude00",
    ];
    const tree: Tree = Object.fromEntries(names.map((name, index) => [name, `content ${index}`]));
    const workspace = await arena.open({ lower: { odd: tree, empty: {}, work: { ...HIDDEN } }, rules: RULES });
    expect(await probe.names(workspace.at("/odd"))).toEqual(names.toSorted());
    for (const [name, content] of Object.entries(tree)) {
      expect(await probe.text(workspace.at(`/odd/${name}`)), JSON.stringify(name)).toBe(content);
    }
    const missing = [
      ...names,
      "valueOf",
      "prototype",
      "isPrototypeOf",
      "__defineGetter__",
      "length",
      "name",
      "0",
      "size",
    ];
    expectOnly(
      await outcomesOf(
        probe,
        workspace,
        missing.flatMap((name) => looksAt(workspace.at(`/empty/${name}`))),
      ),
      "ENOENT",
    );
    for (const name of names) {
      const errnos = await probe.errnos([
        ["mkdirat", workspace.at(`/work/${name}`)],
        ["writeFile", workspace.at(`/work/${name}/${name}`), name],
        ["writeFile", workspace.at(`/work/${name}/.env`), "planted"],
        ["unlinkat", workspace.at(`/work/${name}/${name}`)],
        ["rmdir", workspace.at(`/work/${name}`)],
      ]);
      expect(errnos, JSON.stringify(name)).toEqual(["OK", "OK", "EACCES", "OK", "OK"]);
    }
  });

  test("DISC-45 below a directory with a line feed or a line separator in its name, hidden stays hidden", async () => {
    const { probe } = arena;
    const directories = [
      "line\nfeed",
      "\n",
      "cr\rlf\r\n",
      "para\u2028graph",
      "\u2029",
      "nul\u0000ish".replace("\u0000", "\u0001"),
    ];
    const below = {
      ...HIDDEN,
      "shown.txt": "shown",
      "key.pem": CANARY.hidden,
      sub: { ...HIDDEN, "key.pem": CANARY.hidden },
    };
    const tree = Object.fromEntries(directories.map((name) => [name, below]));
    const rules = [...RULES, { pattern: "**/*.pem", permission: "none", priority: 100 } as const];
    const workspace = await arena.open({ lower: tree, rules });
    for (const name of directories) {
      expect(await probe.names(workspace.at(`/${name}`)), JSON.stringify(name)).toEqual(["shown.txt", "sub"]);
      expect(await probe.names(workspace.at(`/${name}/sub`)), JSON.stringify(name)).toEqual([]);
      const paths = [".env", ".env.d", ".env.d/inner.txt", "key.pem", "sub/.env", "sub/key.pem"];
      expectOnly(
        await outcomesOf(
          probe,
          workspace,
          paths.flatMap((path) => usesOf(workspace.at(`/${name}/${path}`))),
        ),
        "ENOENT",
      );
    }
    expect((await probe.call("scan", workspace.mountPoint, [CANARY.hidden])).found).toEqual([]);
  });

  test("DISC-46 a child of a directory hidden by its name is hidden, whatever weaker rule matches it", async () => {
    const { probe } = arena;
    const secret = { "aws.json": CANARY.hidden, "README.md": CANARY.hidden, deep: { "x.ts": CANARY.hidden } };
    const lower = {
      credentials: secret,
      src: { "credentials.d": secret, "app.ts": "app" },
      work: { ".env.d": secret },
    };
    const there = await arena.open({
      lower,
      rules: [
        { pattern: "**/credentials*", permission: "none" },
        { pattern: "**/*", permission: "read" },
        { pattern: "**/*.md", permission: "read" },
        { pattern: "/work/**", permission: "write" },
        { pattern: "**/.env*", permission: "none", priority: 10 },
      ],
    });
    expect(await probe.names(there.mountPoint)).toEqual(["src", "work"]);
    expect(await probe.names(there.at("/src"))).toEqual(["app.ts"]);
    expect(await probe.names(there.at("/work"))).toEqual([]);
    const parents = ["/credentials", "/src/credentials.d", "/work/.env.d"];
    const paths = parents.flatMap((parent) => [parent, `${parent}/aws.json`, `${parent}/deep`, `${parent}/deep/x.ts`]);
    expectOnly(
      await outcomesOf(
        probe,
        there,
        paths.flatMap((path) => usesOf(there.at(path))),
      ),
      "ENOENT",
    );
    expect((await probe.call("scan", there.mountPoint, [CANARY.hidden])).found).toEqual([]);
  });

  test("DISC-49 names and paths that are too long give an ordinary error", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const long = [256, 300, 1023, 1024, 1025, 4000, 4095].flatMap((length) => [
      "x".repeat(length),
      `.env${"x".repeat(length - 4)}`,
    ]);
    const beyond = [`${"/sub".repeat(2000)}/x`, `/${"x/".repeat(3000)}`, `/work/${"é".repeat(200)}`];
    const outcomes = await outcomesOf(
      probe,
      there,
      [...long.flatMap((name) => [`/${name}`, `/work/${name}`, `/src/${name}/x`]), ...beyond].flatMap(
        (path): Call[] => [
          ["fstatat", there.at(path)],
          ["tryOpen", there.at(path), O.RDONLY],
          ["faccessat", there.at(path), OK.F],
          ["unlinkat", there.at(path)],
          ["readlinkat", there.at(path)],
        ],
      ),
    );
    expectOnly(outcomes, "ENAMETOOLONG", "ENOENT");
    const creating = await outcomesOf(
      probe,
      there,
      long.flatMap((name): Call[] => [
        ["tryOpen", there.at(`/work/${name}`), O.WRONLY | O.CREAT],
        ["mkdirat", there.at(`/work/${name}`)],
        ["symlinkat", "x", there.at(`/work/${name}`)],
        ["linkat", there.at(OWN), there.at(`/work/${name}`)],
        ["renameat2", there.at(OWN), there.at(`/work/${name}`)],
      ]),
    );
    expectOnly(creating, "ENAMETOOLONG", "ENOENT", "EACCES");
    const fitting = `.env${"x".repeat(251)}`;
    expectOnly(await outcomesOf(probe, there, usesOf(there.at(`/work/${fitting}`))), "ENOENT");
    expect(await probe.errnoOf("fstatat", there.at("/README.md"))).toBe("OK");
  });

  test("DISC-50 entries with names of up to 255 bytes can be removed and made again", async () => {
    const { probe } = arena;
    const names = [250, 251, 252, 253, 254, 255].map((length) => "n".repeat(length)).concat("é".repeat(127));
    const files = Object.fromEntries(names.map((name) => [name, "from the codebase"]));
    const directories = Object.fromEntries(names.map((name) => [name, {}]));
    const workspace = await arena.open({ lower: { work: { files, directories, both: { ...files } } }, rules: RULES });
    const each = async (row: (name: string) => Call) => new Set(await probe.errnos(names.map(row)));
    expect(await each((name) => ["unlinkat", workspace.at(`/work/files/${name}`)])).toEqual(new Set(["OK"]));
    expect(await each((name) => ["rmdir", workspace.at(`/work/directories/${name}`)])).toEqual(new Set(["OK"]));
    expect(
      await each((name) => ["renameat2", workspace.at(`/work/both/${name}`), workspace.at(`/work/files/${name}`)]),
    ).toEqual(new Set(["OK"]));
    expect(await probe.names(workspace.at("/work/both"))).toEqual([]);
    expect(await each((name) => ["unlinkat", workspace.at(`/work/files/${name}`)])).toEqual(new Set(["OK"]));
    await workspace.remount();
    for (const path of ["/work/files", "/work/directories", "/work/both"]) {
      expect(await probe.names(workspace.at(path)), path).toEqual([]);
    }
    expect(await each((name) => ["fstatat", workspace.at(`/work/files/${name}`)])).toEqual(new Set(["ENOENT"]));
    expect(await each((name) => ["writeFile", workspace.at(`/work/files/${name}`), "new"])).toEqual(new Set(["OK"]));
    expect(await each((name) => ["mkdirat", workspace.at(`/work/directories/${name}`)])).toEqual(new Set(["OK"]));
    await workspace.remount();
    expect(await probe.names(workspace.at("/work/files"))).toEqual(names.toSorted());
    expect(await probe.names(workspace.at("/work/directories"))).toEqual(names.toSorted());
    for (const name of names) expect(await probe.text(workspace.at(`/work/files/${name}`))).toBe("new");
  });

  test("DISC-51 the marks of deleted entries are neither listed nor found", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const emptied = await probe.errnos([
      ["unlinkat", there.at("/work/notes.txt")],
      ["unlinkat", there.at("/work/sub/inner.txt")],
      ["rmdir", there.at("/work/sub")],
      ["mkdirat", there.at("/work/sub")],
    ]);
    expect(emptied).toEqual(["OK", "OK", "OK", "OK"]);
    const marks = [
      ".wh.notes.txt",
      ".wh.sub",
      ".wh..wh..opq",
      ".wh.",
      ".wh..",
      ".wh...",
      ".wh..wh.",
      "sub/.wh..wh..opq",
    ];
    for (const again of [false, true]) {
      if (again) await there.remount();
      expectOnly(
        await outcomesOf(
          probe,
          there,
          marks.flatMap((name) => looksAt(there.at(`/work/${name}`))),
        ),
        "ENOENT",
      );
      expectOnly(
        await outcomesOf(
          probe,
          there,
          marks.flatMap((name): Call[] => [
            ["unlinkat", there.at(`/work/${name}`)],
            ["rmdir", there.at(`/work/${name}`)],
            ["renameat2", there.at(`/work/${name}`), there.at("/work/taken")],
            ["renameat2", there.at(OWN), there.at(`/work/${name}`), RENAME.EXCHANGE],
            ["linkat", there.at(`/work/${name}`), there.at("/work/taken")],
          ]),
        ),
        "ENOENT",
      );
      expect(await probe.names(there.at("/work"))).toEqual([
        "kept.txt",
        "own-directory",
        "own.txt",
        "shown.txt",
        "sub",
      ]);
      expect(await probe.names(there.at("/work/sub"))).toEqual([]);
    }
  });

  test("DISC-52 files of the codebase that are named like marks are ordinary files", async () => {
    const { probe } = arena;
    const tree = {
      ".wh.notes.txt": "marked",
      "notes.txt": "notes",
      ".wh..wh..opq": "opaque",
      other: "other",
      ".wh.": "bare",
    };
    const workspace = await arena.open({ lower: { ...tree, work: tree }, rules: RULES });
    for (const place of ["", "/work"]) {
      const names = (await probe.names(workspace.at(place))).filter((name) => name !== "work");
      expect(names).toEqual(Object.keys(tree).sort());
      for (const [name, content] of Object.entries(tree)) {
        expect(await probe.text(workspace.at(`${place}/${name}`)), name).toBe(content);
      }
    }
    await probe.call("writeFile", workspace.at("/work/.wh.notes.txt"), "changed");
    await workspace.remount();
    expect(await probe.text(workspace.at("/work/notes.txt"))).toBe("notes");
    expect(await probe.text(workspace.at("/work/other"))).toBe("other");
  });

  test("DISC-53 an open file that is removed or replaced stays readable and leaves no name behind", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const { ret: codebaseFile } = await probe.call("openat", there.at("/work/notes.txt"), O.RDONLY);
    const { ret: ownFile } = await probe.call("openat", there.at(OWN), O.RDWR);
    const { ret: replaced } = await probe.call("openat", there.at("/work/sub/inner.txt"), O.RDONLY);
    const errnos = await probe.errnos([
      ["unlinkat", there.at("/work/notes.txt")],
      ["unlinkat", there.at(OWN)],
      ["writeFile", there.at("/work/replacement"), "replacement"],
      ["renameat2", there.at("/work/replacement"), there.at("/work/sub/inner.txt")],
    ]);
    expect(errnos).toEqual(["OK", "OK", "OK", "OK"]);
    expect(await probe.names(there.at("/work"))).toEqual(["kept.txt", "own-directory", "shown.txt", "sub"]);
    expect(await probe.names(there.at("/work/sub"))).toEqual(["inner.txt"]);
    const contents = await probe.batch([
      ["pread", codebaseFile, 100, 0],
      ["pread", ownFile, 100, 0],
      ["pread", replaced, 100, 0],
      ["pwrite", ownFile, "still mine", 0],
      ["pread", ownFile, 100, 0],
    ]);
    const text = contents.map((answer) =>
      answer.data === undefined ? answer.errno : Buffer.from(answer.data).toString(),
    );
    expect(text).toEqual(["notes\n", "mine\n", "inner\n", "OK", "still mine"]);
    const { stat } = await probe.call("fstatat", { at: ownFile, path: "" }, 0x1000);
    expect(stat?.nlink).toBe(0);
    for (const fd of [codebaseFile, ownFile, replaced]) await probe.call("close", fd);
    expect(await probe.names(there.at("/work"))).toEqual(["kept.txt", "own-directory", "shown.txt", "sub"]);
  });
});
