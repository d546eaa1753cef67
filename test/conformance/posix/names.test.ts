import { expect, test } from "vitest";
import { outcome } from "./caller.ts";
import { append, describeMountedByAnyone, listEntries, read, write } from "./mounted.ts";

/** As long as a name can be: a whiteout's prefix does not fit in front of it. */
const LONGEST = "l".repeat(255);
/** Bytes that are not UTF-8, as Python and this project spell them: one lone surrogate each. */
const INVALID = [
  "latin1-\udce9",
  "\udcff\udcfe",
  "\udc80",
  "half-\udce2\udc82",
  "overlong-\udcc0\udcaf",
  "surrogate-\udced\udca0\udc80",
];
const ODD = [
  "line\nfeed",
  "carriage\rreturn",
  "tab\t",
  " leading",
  "trailing ",
  "*",
  "?",
  "[ab]",
  "{a,b}",
  "back\\slash",
  "quote\"'",
  "-rf",
  "\u2028",
  "\u0001",
  "\u007f",
  "ﬀ",
  "e\u0301",
  "\u00e9",
  "🙂",
  "__proto__",
  "constructor",
  "toString",
  "...",
  "..a",
  ".wh",
  "wh.x",
  "%2e",
  ":",
  "con",
];

describeMountedByAnyone(
  "names",
  {
    lower: {
      longest: { [LONGEST]: "long", short: "short", [`${"m".repeat(251)}`]: "251", [`${"o".repeat(252)}`]: "252" },
      invalid: Object.fromEntries(INVALID.map((name) => [name, `content of ${INVALID.indexOf(name)}`])),
      odd: Object.fromEntries(ODD.map((name) => [name, `content of ${ODD.indexOf(name)}`])),
      empty: {},
    },
  },
  (m) => {
    test("a codebase file with a name of 255 bytes can be read, written, renamed, unlinked and made again", async () => {
      const { fs } = m;
      const path = `longest/${LONGEST}`;
      expect(await read(fs, path)).toBe("long");
      await append(fs, path, "er");
      expect(await read(fs, path)).toBe("longer");
      await fs.unlink(path);
      expect(await outcome(fs.lstat(path))).toBe("ENOENT");
      expect((await fs.listdir("longest")).map((name) => name.length).sort()).toEqual([251, 252, 5]);
      await fs.mkdir(path);
      expect(await fs.listdir(path)).toEqual([]);
      await fs.rmdir(path);
      await write(fs, path, "again");
      expect(await read(fs, path)).toBe("again");
      await fs.rename(path, `longest/${"k".repeat(255)}`);
      await fs.unlink(`longest/${"k".repeat(255)}`);
    });

    test("names of 251 and 252 bytes, the edge of the whiteout prefix, can be unlinked", async () => {
      const { fs } = m;
      for (const name of ["m".repeat(251), "o".repeat(252)]) {
        await fs.unlink(`longest/${name}`);
        expect(await outcome(fs.lstat(`longest/${name}`))).toBe("ENOENT");
      }
      expect(await fs.listdir("longest")).toEqual(["short"]);
    });

    test("a directory with a name of 255 bytes from the delta can be renamed and removed", async () => {
      const { fs } = m;
      await fs.mkdir(LONGEST);
      await write(fs, `${LONGEST}/${LONGEST}`, "deep");
      await fs.rename(LONGEST, "z".repeat(255));
      expect(await read(fs, `${"z".repeat(255)}/${LONGEST}`)).toBe("deep");
      await fs.run(["rm", "-r", "z".repeat(255)]);
    });

    test("bytes that are not UTF-8 are kept exactly, in every call", async () => {
      const { fs } = m;
      expect((await fs.listdir("invalid")).sort()).toEqual([...INVALID].sort());
      for (const [index, name] of INVALID.entries()) {
        const path = `invalid/${name}`;
        expect(await read(fs, path)).toBe(`content of ${index}`);
        await append(fs, path, "!");
        await fs.rename(path, `${path}2`);
        await fs.link(`${path}2`, path);
        await fs.unlink(`${path}2`);
        expect(await read(fs, path)).toBe(`content of ${index}!`);
        await fs.symlink(name, `invalid/link-${name}`);
        expect(await fs.readlink(`invalid/link-${name}`)).toBe(name);
      }
      const links = INVALID.map((name) => `link-${name}`);
      expect((await fs.listdir("invalid")).sort()).toEqual([...INVALID, ...links].sort());
    });

    test("a name that is not UTF-8 and what decoders make of it are different files", async () => {
      const { fs } = m;
      const similar = ["caf\udce9", "caf\u00e9", "caf\ufffd", "caf?"];
      for (const [index, name] of similar.entries()) await write(fs, `empty/${name}`, String(index));
      for (const [index, name] of similar.entries()) expect(await read(fs, `empty/${name}`)).toBe(String(index));
      await fs.unlink("empty/caf\udce9");
      expect((await fs.listdir("empty")).sort()).toEqual(similar.slice(1).sort());
    });

    test("odd names are plain names", async () => {
      const { fs } = m;
      expect((await fs.listdir("odd")).sort()).toEqual([...ODD].sort());
      for (const [index, name] of ODD.entries()) {
        const path = `odd/${name}`;
        expect(await read(fs, path), JSON.stringify(name)).toBe(`content of ${index}`);
        await fs.unlink(path);
        expect(await outcome(fs.lstat(path)), JSON.stringify(name)).toBe("ENOENT");
        await write(fs, path, "made again");
      }
      expect((await listEntries(fs, "odd")).length).toBe(ODD.length + 2);
    });

    test("members of JavaScript objects are not files", async () => {
      const { fs } = m;
      for (const name of ["hasOwnProperty", "valueOf", "__defineGetter__", "prototype", "length", "0"]) {
        expect(await outcome(fs.lstat(name)), name).toBe("ENOENT");
        await write(fs, name, name);
        expect(await read(fs, name)).toBe(name);
      }
    });

    test("names differ by case and by Unicode form", async () => {
      const { fs } = m;
      await fs.mkdir("forms");
      for (const name of ["A", "a", "\u00e9", "e\u0301"]) await write(fs, `forms/${name}`, "");
      expect(await fs.listdir("forms")).toHaveLength(4);
    });
  },
);
