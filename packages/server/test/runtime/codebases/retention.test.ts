import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { JobInput, JobName, JobOutput } from "../../../src/isolation/jobs/jobs.ts";
import { type Jobs, JobThread } from "../../../src/isolation/jobs/thread.ts";
import type { AskOptions } from "../../../src/isolation/threads/answering-thread.ts";
import { SERVER } from "../../../src/runtime/caller.ts";
import { ALICE, arrange, refusal, shapeOf, temporary, textOf } from "./fixture.ts";
import { chunks, collected, openPlace, pieces, type Store } from "./opening.ts";

const keptIn = (root: string, id: string): string[] =>
  readdirSync(join(root, "codebases", id, "kept")).sort((a, b) => Number(a) - Number(b));

/** Old versions go after a change has its answer, and before the next one's turn: a sync of nothing waits for that. */
const settle = (codebases: Store, id: string) => codebases.sync(id, "sb_0000000000000000", async () => []);

async function listed(codebases: Store, id: string): Promise<number[]> {
  return (await codebases.listVersions(SERVER, id, { pageSize: 1000, pageToken: "" })).items.map((one) => one.version);
}

const write = (codebases: Store, id: string, text: string) => codebases.upload(SERVER, id, "a", chunks(text));

describe("a codebase that keeps three versions", () => {
  const retention = { versions: 3, bytes: 0 };

  test("has the newest three, and does not know the others", async () => {
    const { codebases, id, root } = await arrange({ retention });
    for (const text of ["1", "2", "3", "4", "5", "6"]) await write(codebases, id, text);
    await settle(codebases, id);
    expect(await listed(codebases, id)).toEqual([6, 5, 4]);
    expect(keptIn(root, id)).toEqual(["5", "6"]);
    for (const [version, text] of [4, 5, 6].map((n) => [n, String(n)] as const)) {
      expect(await textOf(codebases, id, "a", version)).toBe(text);
    }
    expect((await codebases.getVersion(ALICE, id, 4)).changes).toEqual([
      { kind: "modified", path: "a", size: 1, sensitive: false },
    ]);

    const gone = "VERSION_NOT_FOUND: version 3 not found: it is no longer kept";
    const query = { path: "", recursive: true, pageSize: 0, pageToken: "", version: 3 };
    expect(await refusal(codebases.download(ALICE, id, "a", { version: 3 }))).toBe(gone);
    expect(await refusal(codebases.listFiles(ALICE, id, query))).toBe(gone);
    expect(await refusal(codebases.listFiles(ALICE, id, { ...query, path: "d" }))).toBe(gone);
    expect(await refusal(codebases.downloadArchive(ALICE, id, query))).toBe(gone);
    expect(await refusal(codebases.getVersion(ALICE, id, 3))).toBe(gone);
    expect(await refusal(codebases.open(id, 3))).toBe(gone);
    expect(await refusal(codebases.rollback(ALICE, id, 3))).toBe("VERSION_NOT_FOUND: version 3 not found");
    expect(await refusal(codebases.getVersion(ALICE, id, 7))).toBe(
      "VERSION_NOT_FOUND: version 7 not found: the newest is 6",
    );
    expect(await codebases.rollback(ALICE, id, 4)).toMatchObject({ version: 7, filesChanged: 1 });
    expect(await textOf(codebases, id, "a")).toBe("4");
  });

  test("never has more than one too many, however many changes wait", async () => {
    const { codebases, id, root, metadata } = await arrange({ retention });
    let most = 0;
    codebases.onChange(async () => {
      const versions = await metadata.listVersions(id, { limit: 1000 });
      most = Math.max(most, keptIn(root, id).length, versions.length - 1);
    });
    await Promise.all(Array.from({ length: 30 }, (_, n) => write(codebases, id, `${n}`)));
    await settle(codebases, id);
    expect(most).toBe(3);
    expect(await listed(codebases, id)).toEqual([30, 29, 28]);
    expect(keptIn(root, id)).toEqual(["29", "30"]);
  });

  test("leaves a sandbox the version it is pinned to", async () => {
    const { codebases, id } = await arrange({ retention });
    await codebases.batch(ALICE, id, pieces(["a", "old"], ["d/b", "old too"]));
    const [first, second] = [await codebases.open(id, 1), await codebases.open(id, 1)];
    const shape = shapeOf(first.directory);
    for (const text of ["2", "3", "4", "5"]) await codebases.batch(ALICE, id, pieces(["a", text], ["d/b", text]));
    await settle(codebases, id);
    expect(shapeOf(first.directory)).toEqual(shape);
    expect(shape).toEqual({ a: "644 old", d: "755/", "d/b": "644 old too" });
    const third = await codebases.open(id, 1);
    expect(third.directory).toBe(first.directory);
    for (const layer of [first, second, third]) await layer.release();
    expect(await refusal(codebases.open(id, 1))).toMatch(/^VERSION_NOT_FOUND/);
  });

  test("lets a download of an old version end, and an archive end or fail as a whole", async () => {
    const { codebases, id } = await arrange({ retention });
    const old = "o".repeat(1_000_000);
    await codebases.batch(ALICE, id, pieces(["a", old], ["b", old], ["c", old]));
    const download = await codebases.download(ALICE, id, "a", { version: 1 });
    const archive = (await codebases.downloadArchive(ALICE, id, { path: "", version: 1 }))[Symbol.asyncIterator]();
    await archive.next();
    const descriptors = () => readdirSync("/proc/self/fd").length;
    for (const text of ["2", "3", "4", "5"])
      await codebases.batch(ALICE, id, pieces(["a", text], ["b", text], ["c", text]));
    await settle(codebases, id);
    expect((await collected(download.content)).toString()).toBe(old);
    const before = descriptors();
    const rest = (async () => {
      while ((await archive.next()).done !== true);
    })();
    expect(await refusal(rest)).toBe("VERSION_NOT_FOUND: version 1 not found: it is no longer kept");
    expect(descriptors()).toBeLessThanOrEqual(before);
  });

  test("shows readers a version as it was or not at all", async () => {
    const { codebases, id } = await arrange({ retention });
    const names = ["x", "y", "z"];
    const change = (text: string) => codebases.batch(ALICE, id, pieces(...names.map((name) => [name, text] as const)));
    await change("1");
    let newest = 1;
    const writing = (async () => {
      for (let n = 2; n <= 60; n++) {
        await change(String(n));
        newest = n;
      }
    })();
    const seen = { right: 0, gone: 0 };
    while (newest < 60) {
      const version = Math.max(1, newest - (seen.right % 4));
      const name = names[seen.right % 3]!;
      try {
        expect(await textOf(codebases, id, name, version)).toBe(String(version));
        seen.right += 1;
      } catch (error) {
        expect((error as { code?: string }).code).toBe("VERSION_NOT_FOUND");
        seen.gone += 1;
        seen.right += 1;
      }
    }
    await writing;
    expect(seen.right).toBeGreaterThan(0);
  });
});

describe("a codebase that keeps so many bytes", () => {
  test("has as many versions as fit, and always the one before the newest", async () => {
    const block = 4096 + 512;
    const { codebases, id, root } = await arrange({ retention: { versions: 0, bytes: 4 * block } });
    for (let n = 1; n <= 10; n++) await write(codebases, id, String(n).repeat(100));
    await settle(codebases, id);
    expect(await listed(codebases, id)).toEqual([10, 9, 8, 7, 6]);
    expect(keptIn(root, id)).toEqual(["7", "8", "9", "10"]);
    await write(codebases, id, "large ".repeat(10_000));
    await write(codebases, id, "small");
    await settle(codebases, id);
    expect(await listed(codebases, id)).toEqual([12, 11]);
    expect(keptIn(root, id)).toEqual(["12"]);
    await codebases.rollback(ALICE, id, 11);
    expect(await textOf(codebases, id, "a")).toBe("large ".repeat(10_000));
  });

  test("loses none of them to renames", async () => {
    const { codebases, id } = await arrange({ retention: { versions: 0, bytes: 50_000 } });
    await codebases.upload(ALICE, id, "f0", chunks("x".repeat(40_000)));
    for (let n = 0; n < 8; n++) await codebases.renameFile(ALICE, id, `f${n}`, `f${n + 1}`);
    await settle(codebases, id);
    expect(await listed(codebases, id)).toHaveLength(9);
    expect(await textOf(codebases, id, "f0", 1)).toBe("x".repeat(40_000));
  });
});

describe("a codebase that keeps one version", () => {
  test("keeps no content but that", async () => {
    const { codebases, id, root } = await arrange({ retention: { versions: 1, bytes: 0 } });
    await codebases.batch(ALICE, id, pieces(["a", "1"], ["b", "1"]));
    await write(codebases, id, "2");
    await codebases.deleteFile(ALICE, id, "b");
    await settle(codebases, id);
    expect(await listed(codebases, id)).toEqual([3]);
    expect(keptIn(root, id)).toEqual([]);
    expect((await codebases.getVersion(ALICE, id, 3)).changes).toEqual([
      { kind: "deleted", path: "b", size: 1, sensitive: false },
    ]);
    expect(await textOf(codebases, id, "a", 3)).toBe("2");
  });
});

describe("a server that dies", () => {
  test("between the metadata and the disk leaves nothing for good", async () => {
    const root = temporary();
    const retention = { versions: 2, bytes: 0 };
    await using threads = new JobThread({ threads: 1 });
    const logged: string[] = [];
    let id = "";
    {
      const jobs = new ForgetfulJobs(threads);
      await using place = await openPlace(root, { retention, jobs, log: ({ message }) => void logged.push(message) });
      ({ id } = await place.codebases.create(SERVER, { name: "p", ownerId: "o" }));
      for (const text of ["1", "2", "3", "4", "5"]) await write(place.codebases, id, text);
      await settle(place.codebases, id);
      expect(await listed(place.codebases, id)).toEqual([5, 4]);
      expect(keptIn(root, id)).toEqual(["2", "3", "4", "5"]);
      expect(new Set(logged)).toEqual(new Set(["old versions could not be removed"]));
    }
    for (let start = 0; start < 2; start++) {
      await using place = await openPlace(root, { retention, jobs: threads });
      expect(keptIn(root, id)).toEqual(["5"]);
      expect(await listed(place.codebases, id)).toEqual([5, 4]);
      expect(await textOf(place.codebases, id, "a", 4)).toBe("4");
    }
  });

  test("before it dropped anything does so at the next start, as one with a new configuration does", async () => {
    const root = temporary();
    let id = "";
    {
      await using place = await openPlace(root, { retention: { versions: 0, bytes: 0 } });
      ({ id } = await place.codebases.create(SERVER, { name: "p", ownerId: "o" }));
      for (let n = 1; n <= 300; n++) await write(place.codebases, id, String(n));
      expect(await listed(place.codebases, id)).toHaveLength(300);
    }
    await using place = await openPlace(root, { retention: { versions: 4, bytes: 0 } });
    expect(await listed(place.codebases, id)).toEqual([300, 299, 298, 297]);
    expect(keptIn(root, id)).toEqual(["298", "299", "300"]);
    expect(await textOf(place.codebases, id, "a", 297)).toBe("297");
  });

  test("is not closed before what it was removing is gone", async () => {
    const root = temporary();
    let id = "";
    {
      await using place = await openPlace(root, { retention: { versions: 1, bytes: 0 } });
      ({ id } = await place.codebases.create(SERVER, { name: "p", ownerId: "o" }));
      await write(place.codebases, id, "1");
      await write(place.codebases, id, "2");
    }
    expect(keptIn(root, id)).toEqual([]);
  });
});

/** Does everything but removing what dropped versions kept. */
class ForgetfulJobs implements Jobs {
  readonly #jobs: Jobs;

  constructor(jobs: Jobs) {
    this.#jobs = jobs;
  }

  async run<Name extends JobName>(name: Name, input: JobInput<Name>, options?: AskOptions): Promise<JobOutput<Name>> {
    if (name === "releaseKept") throw new Error("the server died");
    return await this.#jobs.run(name, input, options);
  }
}
