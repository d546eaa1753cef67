import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { tar } from "../../../../../test/support/tar.ts";
import type { BatchPiece } from "../../../src/runtime/codebases/api.ts";
import { collecting } from "./collecting.ts";
import { ALICE, arrange, refusal } from "./fixture.ts";
import { chunks, type Piece, pieces } from "./opening.ts";

const directory = (path: string): BatchPiece => ({ entry: { kind: "directory", path, mode: 0 } });

describe("the size of an upload", () => {
  const limits = { maxUploadSize: 5000 };
  const refused = "LIMIT_EXCEEDED: an upload may have 5000 bytes at most";

  test("API-13: is limited while it arrives, in one file or in many", async () => {
    const { codebases, id, root, tree } = await arrange({ limits });
    let sent = 0;
    const endless = async function* () {
      for (;;) {
        sent += 1000;
        yield Buffer.alloc(1000);
      }
    };
    expect(await refusal(codebases.upload(ALICE, id, "a", endless()))).toBe(refused);
    expect(sent).toBeLessThanOrEqual(7000);
    let asked = false;
    const unasked = async function* () {
      asked = true;
      yield Buffer.alloc(1);
    };
    expect(await refusal(codebases.upload(ALICE, id, "a", unasked(), { totalSize: 5001 }))).toBe(refused);
    expect(asked).toBe(false);
    const many = (count: number): Piece[] => Array.from({ length: count }, (_, n) => [`f${n}`, "x".repeat(1000)]);
    expect(await refusal(codebases.batch(ALICE, id, pieces(...many(6))))).toBe(refused);
    expect(tree()).toEqual({});
    expect(readdirSync(join(root, "codebases", id, "staging"))).toEqual([]);
    expect(await refusal(codebases.batch(ALICE, id, pieces(...many(5))))).toBe("it succeeded");
    expect(await refusal(codebases.upload(ALICE, id, "a", chunks("x".repeat(5000))))).toBe("it succeeded");
    expect(await codebases.get(ALICE, id)).toMatchObject({ size: 10_000 });
  });

  test("counts all that an archive has, names and padding too", async () => {
    const { codebases, id, tree } = await arrange({ limits });
    const archive = (files: number) => {
      const bytes = tar(Array.from({ length: files }, (_, n) => ({ name: `f${n}`, content: "x" })));
      return refusal(codebases.uploadArchive(ALICE, id, chunks(bytes)));
    };
    expect(await archive(6)).toBe(refused);
    expect(tree()).toEqual({});
    expect(await archive(3)).toBe("it succeeded");
  });

  test("has no limit when that is 0, and a sync is no upload", async () => {
    const free = await arrange();
    expect(await refusal(free.codebases.upload(ALICE, free.id, "a", chunks("x".repeat(9000))))).toBe("it succeeded");
    const { codebases, id } = await arrange({ limits });
    const wishes = ["a", "b", "c"].map((path) => ({ path, text: path.repeat(4000) }));
    expect(await codebases.sync(id, "sb_aaaaaaaaaaaaaaaa", collecting(...wishes))).toMatchObject({ version: 1 });
  });
});

describe("directories", () => {
  const refused = "LIMIT_EXCEEDED: all codebases of an owner may have 4 directories at most";

  test("API-13: an owner has no more of them than of files, named or on the way to something", async () => {
    const { codebases, id, tree } = await arrange({ limits: { maxFilesPerOwner: 4 } });
    const names = ["a", "b", "c", "d", "e"];
    expect(await refusal(codebases.batch(ALICE, id, pieces(...names.map(directory))))).toBe(refused);
    expect(await refusal(codebases.upload(ALICE, id, "a/b/c/d/e/f", chunks()))).toBe(refused);
    expect(await refusal(codebases.link(ALICE, id, "a/b/c/d/e/f", "x"))).toBe(refused);
    expect(tree()).toEqual({});
    await codebases.batch(ALICE, id, pieces(...names.slice(0, 3).map(directory), ["a/file", "x"]));
    const other = await codebases.create(ALICE, { name: "second", ownerId: "" });
    expect(await refusal(codebases.upload(ALICE, other.id, "x/y/f", chunks()))).toBe(refused);
    expect(await refusal(codebases.upload(ALICE, other.id, "x/f", chunks()))).toBe("it succeeded");
    const sync = codebases.sync(id, "sb_aaaaaaaaaaaaaaaa", collecting({ path: "z", directory: true, mode: 0o755 }));
    expect(await refusal(sync)).toBe(refused);
    expect(await refusal(codebases.renameFile(ALICE, id, "a/file", "new/file"))).toBe(refused);
    await codebases.renameFile(ALICE, id, "b", "bb");
    await codebases.deleteFile(ALICE, id, "bb");
    await codebases.upload(ALICE, id, "new/file", chunks());
    expect(Object.keys(tree()).sort()).toEqual(["a", "a/file", "c", "new", "new/file"]);
  });
});
