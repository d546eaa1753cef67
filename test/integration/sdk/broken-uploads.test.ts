import { Sandbox, type SandboxClient } from "agentfense";
import { describe, expect, test } from "vitest";
import { setStage, type World } from "../../support/scenes.ts";

const WORLDS: readonly World[] = ["embedded", "remote"];
const OLD = { "a.txt": "old\n", "b.txt": "old\n" };
/** What a cancelled call looks like from outside depends on the moment. */
const TIMES = 10;

type Give = (client: SandboxClient, codebaseId: string, half: () => AsyncGenerator<Uint8Array>) => Promise<unknown>;

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

const UPLOADS: Readonly<Record<string, Give>> = {
  "a file": (client, codebaseId, half) => client.uploadFile(codebaseId, "a.txt", half()),
  "a batch": (client, codebaseId, half) => {
    async function* entries() {
      yield { kind: "file" as const, path: "a.txt", mode: 0o644, content: bytes("new\n"), size: 4, sha256: "" };
      for await (const _ of half()) yield { kind: "directory" as const, path: "made", mode: 0o755 };
    }
    return client.batchUpload(codebaseId, entries(), { replaceAll: true });
  },
  "an archive": (client, codebaseId, half) => client.uploadArchive(codebaseId, half(), { replaceAll: true }),
};

describe.each(WORLDS)("an upload that is given up, %s", (world) => {
  const stage = setStage(world);

  test.each(Object.entries(UPLOADS))("%s changes nothing", async (_, give) => {
    const { client } = stage;
    const { id } = await client.createCodebase({ name: "broken", ownerId: "me" });
    for (const [path, content] of Object.entries(OLD)) await client.uploadFile(id, path, content);
    const before = await client.getCodebase(id);
    for (let time = 0; time < TIMES; time++) {
      const reason = new Error("given up");
      async function* half() {
        yield bytes("half of it");
        throw reason;
      }
      await expect(give(client, id, half)).rejects.toBe(reason);
    }
    // Whatever the server still does with them comes before this.
    await client.uploadFile(id, "last.txt", "last\n");
    expect((await client.getCodebase(id)).version).toBe(before.version + 1);
    const files = await client.listFiles(id, { recursive: true }).toArray();
    expect(files.map(({ path, size }) => [path, size])).toEqual([
      ["a.txt", 4],
      ["b.txt", 4],
      ["last.txt", 5],
    ]);
  });

  test("by its signal changes nothing either", async () => {
    await using sandbox = await Sandbox.create({ ...stage.place });
    const { client, codebaseId } = sandbox;
    await client.uploadFile(codebaseId, "a.txt", "old\n");
    for (let time = 0; time < TIMES; time++) {
      const stop = new AbortController();
      async function* endless() {
        yield bytes("half of it");
        stop.abort();
        await new Promise(() => {});
      }
      await expect(client.uploadFile(codebaseId, "a.txt", endless(), { signal: stop.signal })).rejects.toMatchObject({
        name: "AbortError",
      });
    }
    await client.uploadFile(codebaseId, "last.txt", "last\n");
    expect(new TextDecoder().decode(await client.downloadFile(codebaseId, "a.txt"))).toBe("old\n");
  });
});
