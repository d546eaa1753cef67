import type { UploadChunk } from "@agentfense/protocol/codebase";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { aWhile } from "../../../../test/support/eventually.ts";
import { registryError } from "../../../../test/support/scripted-server.ts";
import { pauseBefore } from "../../src/client/retry.ts";
import { SandboxError } from "../../src/errors.ts";
import { clientOf, rejection } from "./calls.ts";

/** Fails so many times, and counts how often it was asked. */
function failing(times: number, error: () => ConnectError) {
  const asked = {
    count: 0,
    ask() {
      asked.count++;
      if (asked.count <= times) throw error();
    },
  };
  return asked;
}

const unavailable = () => new ConnectError("busy", Code.Unavailable);
const codebase = { id: "cb_1", name: "n" };

describe("a call that changes nothing", () => {
  test("is tried again until the server can answer", async () => {
    const asked = failing(3, unavailable);
    const { client } = await clientOf({
      codebases: {
        getCodebase: () => {
          asked.ask();
          return codebase;
        },
      },
    });
    expect(await client.getCodebase("cb_1")).toMatchObject({ id: "cb_1" });
    expect(asked.count).toBe(4);
  });

  test("is given up after as many attempts as asked for", async () => {
    const asked = failing(9, unavailable);
    const getCodebase = () => {
      asked.ask();
      return codebase;
    };
    const { client } = await clientOf({ codebases: { getCodebase } }, { retries: 1 });
    expect(await rejection(client.getCodebase("cb_1"))).toMatchObject({ name: "ConnectionError", retryable: true });
    expect(asked.count).toBe(2);
  });

  test("is not tried again when the answer would be the same", async () => {
    const asked = failing(9, () => registryError("CODEBASE_NOT_FOUND", "there is none"));
    const getCodebase = () => {
      asked.ask();
      return codebase;
    };
    const { client } = await clientOf({ codebases: { getCodebase } });
    expect(await rejection(client.getCodebase("cb_1"))).toMatchObject({ name: "CodebaseNotFoundError" });
    expect(asked.count).toBe(1);
  });

  test("an abort ends the waiting in between, with its reason", async () => {
    const reason = new Error("enough");
    const abort = new AbortController();
    const asked = failing(1000, unavailable);
    const getCodebase = () => {
      void aWhile(10).then(() => abort.abort(reason));
      asked.ask();
      return codebase;
    };
    const { client } = await clientOf({ codebases: { getCodebase } }, { retries: 1000 });
    expect(await rejection(client.getCodebase("cb_1", { signal: abort.signal }))).toBe(reason);
  });

  test("one deadline is for all attempts together", async () => {
    const asked = failing(1000, unavailable);
    const getCodebase = () => {
      asked.ask();
      return codebase;
    };
    const { client } = await clientOf({ codebases: { getCodebase } }, { retries: 1000, requestTimeoutMs: 500 });
    expect(await rejection(client.getCodebase("cb_1"))).toMatchObject({ name: "ConnectionError" });
    expect(asked.count).toBeLessThan(10);
  });

  test("a connection that is lost is made anew", async () => {
    let asked = 0;
    const { client, server } = await clientOf({
      codebases: {
        getCodebase: async () => {
          asked++;
          if (asked === 1) {
            server.cut();
            await new Promise(() => {});
          }
          return codebase;
        },
      },
    });
    expect(await client.getCodebase("cb_1")).toMatchObject({ id: "cb_1" });
    expect({ asked, connections: server.connections }).toEqual({ asked: 2, connections: 2 });
  });
});

describe("a call that changes something", () => {
  test("is never tried again", async () => {
    const asked = failing(1, unavailable);
    const createCodebase = () => {
      asked.ask();
      return codebase;
    };
    const { client } = await clientOf({ codebases: { createCodebase } });
    expect(await rejection(client.createCodebase({ name: "n" }))).toMatchObject({ name: "ConnectionError" });
    expect(asked.count).toBe(1);
  });
});

describe("content on its way to the server", () => {
  function uploads(times: number) {
    const asked = failing(times, unavailable);
    const received: string[] = [];
    return {
      asked,
      received,
      async uploadFiles(chunks: AsyncIterable<UploadChunk>) {
        let text = "";
        for await (const { content } of chunks) {
          if (content.case === "data") text += Buffer.from(content.value).toString();
        }
        received.push(text);
        asked.ask();
        return { filePath: "a", size: BigInt(text.length) };
      },
    };
  }

  test("is sent again when all of it is in memory", async () => {
    const { uploadFiles, received } = uploads(1);
    const { client } = await clientOf({ codebases: { uploadFiles } });
    expect(await client.uploadFile("cb_1", "a", "text")).toEqual({ path: "a", size: 4, sha256: "", version: 0 });
    expect(received).toEqual(["text", "text"]);
  });

  test("is not sent again when it came in pieces that are gone", async () => {
    const { uploadFiles, received } = uploads(1);
    const { client } = await clientOf({ codebases: { uploadFiles } });
    const pieces = (async function* () {
      yield Buffer.from("te");
      yield Buffer.from("xt");
    })();
    expect(await rejection(client.uploadFile("cb_1", "a", pieces))).toMatchObject({ name: "ConnectionError" });
    expect(received).toEqual(["text"]);
  });

  test("is not sent again when it is added to a file", async () => {
    const asked = failing(1, unavailable);
    const writeFile = async (chunks: AsyncIterable<unknown>) => {
      for await (const _chunk of chunks);
      asked.ask();
      return {};
    };
    const { client } = await clientOf({ sandboxes: { writeFile } });
    const error = await rejection(client.writeFile("sb_1", "log", "line\n", { append: true }));
    expect(error).toMatchObject({ name: "ConnectionError" });
    expect(asked.count).toBe(1);
    expect(await client.writeFile("sb_1", "log", "line\n")).toMatchObject({ kind: "file" });
  });

  test("fails with the error of whoever makes it", async () => {
    const own = new Error("the disk is gone");
    const { uploadFiles } = uploads(0);
    const { client } = await clientOf({ codebases: { uploadFiles } });
    const broken = (async function* () {
      yield Buffer.from("te");
      throw own;
    })();
    expect(await rejection(client.uploadFile("cb_1", "a", broken))).toBe(own);
  });
});

describe("a stream", () => {
  test("is begun again as long as nothing came of it", async () => {
    const asked = failing(2, unavailable);
    const { client } = await clientOf({
      codebases: {
        async *downloadFile() {
          asked.ask();
          yield { data: Buffer.from("text") };
        },
      },
    });
    expect(Buffer.from(await client.downloadFile("cb_1", "a")).toString()).toBe("text");
    expect(asked.count).toBe(3);
  });

  test("is not begun again after its first message", async () => {
    let asked = 0;
    const { client } = await clientOf({
      codebases: {
        async *downloadFile() {
          asked++;
          yield { data: Buffer.from("text") };
          throw unavailable();
        },
      },
    });
    expect(await rejection(client.downloadFile("cb_1", "a"))).toMatchObject({ name: "ConnectionError" });
    expect(asked).toBe(1);
  });

  test("of a command is never begun again", async () => {
    const asked = failing(1, unavailable);
    const { client } = await clientOf({
      sandboxes: {
        async *execStream() {
          asked.ask();
          yield { exitCode: 0 };
        },
      },
    });
    expect(await rejection(client.execStream("sb_1", "rm x").next())).toMatchObject({ name: "ConnectionError" });
    expect(asked.count).toBe(1);
  });
});

describe("how long to wait", () => {
  const busy = new SandboxError("busy", { code: "SHUTTING_DOWN", retryable: true });

  test("twice as long each time, half of it chance, and never too long", () => {
    const longest = [0, 1, 2, 3, 4, 5, 6].map((attempt) => pauseBefore(attempt, busy, () => 1));
    expect(longest).toEqual([100, 200, 400, 800, 1600, 2000, 2000]);
    expect(pauseBefore(0, busy, () => 0)).toBe(50);
  });

  test("as long as the server asks for, unless that is more than anybody wants to wait", () => {
    const limited = (ms: number) =>
      new SandboxError("slow down", { code: "RATE_LIMITED", retryable: true, details: { retry_after_ms: String(ms) } });
    expect(pauseBefore(0, limited(1500))).toBe(1500);
    expect(pauseBefore(0, limited(60_000))).toBeUndefined();
  });

  test("not at all for what stays as it is", () => {
    expect(pauseBefore(0, new SandboxError("no", { code: "INTERNAL" }))).toBeUndefined();
  });
});
