import { once } from "node:events";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { type ExecOutput, SandboxService, type TerminalOutput } from "@agentfense/protocol/sandbox";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { aWhile, eventually } from "../../../../../test/support/eventually.ts";
import { RuntimeError } from "../../../src/runtime/runtime-error.ts";
import type { ExecCall, ExecPart, TerminalHandle } from "../../../src/runtime/sandboxes/api.ts";
import { bench, call, callJson, failureOf, type RuntimeParts, refusalOf, streamOf } from "./fixture.ts";
import { END, EXAMPLES, processesWith } from "./methods.ts";

const codebaseId = "cb_1";
const sandboxId = "sb_1";
const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const metadata = (value: object) => ({ content: { case: "metadata", value } });
const data = (text: string) => ({ content: { case: "data", value: bytes(text) } });

describe("a caller that goes away", () => {
  // Each fake waits until its signal aborts, as the real work would.
  const untilAborted = (signal: AbortSignal | undefined) =>
    new Promise<never>((_, reject) => {
      signal?.addEventListener("abort", () => reject(new RuntimeError("CANCELLED", "cancelled")), { once: true });
    });

  const WAITING: Record<string, (waits: (signal: AbortSignal | undefined) => Promise<never>) => RuntimeParts> = {
    Exec: (waits) => ({ sandboxes: { exec: (_caller, _id, { signal }) => waits(signal) } }),
    SessionExec: (waits) => ({ sandboxes: { sessionExec: (_caller, _id, { signal }) => waits(signal) } }),
    CreateSandbox: (waits) => ({ sandboxes: { create: (_caller, _request, signal) => waits(signal) } }),
    StartSandbox: (waits) => ({ sandboxes: { start: (_caller, _id, signal) => waits(signal) } }),
    CreateSession: (waits) => ({ sandboxes: { createSession: (_caller, _id, _request, signal) => waits(signal) } }),
    ApplyChanges: (waits) => ({ sandboxes: { apply: (_caller, _id, { signal }) => waits(signal) } }),
    ReadFile: (waits) => ({ sandboxes: { readFile: (_caller, _id, _path, signal) => waits(signal) } }),
    WriteFile: (waits) => ({ sandboxes: { writeFile: (_caller, _id, _path, _content, { signal }) => waits(signal) } }),
    UploadFiles: (waits) => ({ codebases: { upload: (_c, _id, _path, _content, options) => waits(options?.signal) } }),
    BatchUpload: (waits) => ({ codebases: { batch: (_caller, _id, _pieces, options) => waits(options?.signal) } }),
    UploadArchive: (waits) => ({ codebases: { uploadArchive: (_c, _id, _tar, options) => waits(options?.signal) } }),
    DownloadFile: (waits) => ({ codebases: { download: (_caller, _id, _path, options) => waits(options?.signal) } }),
    DownloadArchive: (waits) => ({ codebases: { downloadArchive: (_caller, _id, { signal }) => waits(signal) } }),
    ExecStream: (waits) => ({ sandboxes: { execStream: (_caller, _id, { signal }) => never(waits(signal)) } }),
    ExecInteractive: (waits) => ({ sandboxes: { execStream: (_caller, _id, { signal }) => never(waits(signal)) } }),
    WatchFiles: (waits) => ({ sandboxes: { watch: (_caller, _id, _path, { signal }) => waits(signal) } }),
    AttachProcess: (waits) => ({
      sandboxes: {
        processes: async () => processesWith({ attach: (_which, options) => never(waits(options?.signal)) }),
      },
    }),
    WaitProcess: (waits) => ({
      sandboxes: { processes: async () => processesWith({ wait: (_which, options) => waits(options?.signal) }) },
    }),
    SessionExecStream: (waits) => ({
      sandboxes: { sessionExecStream: (_caller, _id, { signal }) => never(waits(signal)) },
    }),
    DiffChanges: (waits) => ({ sandboxes: { diff: (_caller, _id, { signal }) => never(waits(signal)) } }),
    WatchEvents: (waits) => ({ audit: { watch: (_caller, { signal }) => never(waits(signal)) } }),
    ForwardPort: (waits) => ({ sandboxes: { connect: (_caller, _id, _port, signal) => waits(signal) } }),
    OpenTerminal: (waits) => ({ sandboxes: { openTerminal: (_caller, _id, { signal }) => waits(signal) } }),
  };

  async function* never(work: Promise<never>): AsyncGenerator<never> {
    yield await work;
  }

  test.each(Object.keys(WAITING))("%s: the work is told", async (method) => {
    const controller = new AbortController();
    const ended = Promise.withResolvers<string>();
    const { transport, log } = bench(
      WAITING[method]!((signal) => {
        void aWhile(5).then(() => controller.abort());
        const work = untilAborted(signal);
        work.catch((error: RuntimeError) => ended.resolve(error.code));
        return work;
      }),
    );
    const error = await failureOf(call(transport, method, EXAMPLES[method]!.requests, controller.signal));
    expect(error.code).toBe(Code.Canceled);
    expect(await ended.promise).toBe("CANCELLED");
    expect(log).toEqual([]);
  });
});

describe("a download", () => {
  test("comes in pieces of at most 256 KiB, and is closed when its reader stops", async () => {
    let closed = false;
    let given = 0;
    async function* content() {
      try {
        for (; given < 100; given++) yield new Uint8Array(300 * 1024);
      } finally {
        closed = true;
      }
    }
    const { transport } = bench({ sandboxes: { readFile: async () => content() } });
    const controller = new AbortController();
    const sizes: number[] = [];
    const reading = (async () => {
      const response = await transport.stream(
        SandboxService.method.readFile,
        controller.signal,
        undefined,
        undefined,
        streamOf([{ sandboxId, path: "a" }]),
      );
      for await (const chunk of response.message) {
        sizes.push(chunk.data.length);
        if (sizes.length === 3) controller.abort();
      }
    })();
    await failureOf(reading);
    await eventually(() => expect(closed).toBe(true));
    expect(sizes.slice(0, 2)).toEqual([256 * 1024, 44 * 1024]);
    // Nobody read ahead: the rest was never asked for.
    expect(given).toBeLessThan(10);
  });

  test("of an empty file is an empty stream", async () => {
    const entry = {
      path: "a",
      kind: "file",
      mode: 0,
      size: 0,
      sha256: "",
      target: "",
      modifiedAtMs: 0,
      version: 1,
    } as const;
    const { transport } = bench({ codebases: { download: async () => ({ entry, content: streamOf([]) }) } });
    expect(await call(transport, "DownloadFile", [{ codebaseId, filePath: "a" }])).toEqual([]);
  });
});

describe("an upload", () => {
  const drain = async (content: AsyncIterable<unknown>) => {
    for await (const _item of content);
  };
  const result = { size: 0, sha256: "", version: 1 };
  const batchResult = { version: 1, filesChanged: 0, bytesReceived: 0 };
  const view = {
    path: "/a",
    kind: "file",
    size: 0,
    mode: 0,
    target: "",
    modifiedAtMs: 0,
    permission: "write",
  } as const;
  const draining: RuntimeParts = {
    codebases: {
      upload: (_caller, _id, _path, content) => drain(content).then(() => result),
      uploadArchive: (_caller, _id, content) => drain(content).then(() => batchResult),
      batch: (_caller, _id, pieces) => drain(pieces).then(() => batchResult),
    },
    sandboxes: { writeFile: (_caller, _id, _path, content) => drain(content).then(() => view) },
  };

  test.each([
    ["UploadFiles", [metadata({ codebaseId, filePath: "a" }), data("x"), metadata({})], "metadata already received"],
    ["UploadArchive", [metadata({ codebaseId }), metadata({ codebaseId })], "metadata already received"],
    ["WriteFile", [metadata({ sandboxId, path: "a" }), data("x"), metadata({})], "metadata already received"],
    ["BatchUpload", [{ begin: { codebaseId } }, { begin: { codebaseId } }], "begin already received"],
    [
      "BatchUpload",
      [{ begin: { codebaseId }, items: [{ data: bytes("x") }] }],
      "items[0]: entry is required: no file comes before it",
    ],
    [
      "BatchUpload",
      [{ begin: { codebaseId }, items: [{ entry: { path: "a" } }] }, { items: [{ entry: { path: "b", kind: 9 } }] }],
      "items[1]: kind: 9 is not a known value",
    ],
  ])("%s with a wrong message after the first: %#", async (method, requests, message) => {
    expect(await refusalOf(call(bench(draining).transport, method, requests))).toMatchObject({
      code: "InvalidArgument",
      message,
    });
  });

  test("is answered with the stream's fault, whatever the reader made of it", async () => {
    const upload = async (_caller: unknown, _id: string, _path: string, content: AsyncIterable<Uint8Array>) => {
      await drain(content).catch(() => {
        throw new RuntimeError("INTERNAL", "the file could not be written");
      });
      return result;
    };
    const { transport, log } = bench({ codebases: { upload } });
    const requests = [metadata({ codebaseId, filePath: "a" }), metadata({})];
    expect(await refusalOf(call(transport, "UploadFiles", requests))).toMatchObject({
      message: "metadata already received",
    });
    expect(log).toEqual([]);
  });

  test("to an unknown codebase is refused although its content never ends", async () => {
    const { transport } = bench({
      codebases: {
        upload: async () => {
          throw new RuntimeError("CODEBASE_NOT_FOUND", "codebase not found");
        },
      },
    });
    async function* endless() {
      yield metadata({ codebaseId, filePath: "a" });
      for (;;) {
        await aWhile(1);
        yield data("x");
      }
    }
    const { uploadFiles } = CodebaseService.method;
    const uploading = (async () => {
      const response = await transport.stream(uploadFiles, undefined, undefined, undefined, endless() as never);
      await Array.fromAsync(response.message);
    })();
    expect(await refusalOf(uploading)).toMatchObject({ code: "NotFound", message: "codebase not found" });
  });

  test("of a symbolic link makes one", async () => {
    const links: unknown[] = [];
    const { transport } = bench({
      codebases: {
        link: async (_caller, id, path, target) => {
          links.push([id, path, target]);
          return { version: 4 };
        },
      },
    });
    const [answer] = await call(transport, "UploadFiles", [
      metadata({ codebaseId, filePath: "l", symlinkTarget: "../x" }),
    ]);
    expect(links).toEqual([[codebaseId, "l", "../x"]]);
    expect(answer).toMatchObject({ filePath: "l", size: 0n, checksum: "", version: 4n });
  });
});

describe("a terminal", () => {
  const open = { input: { case: "open", value: { sandboxId } } };
  const typed = (text: string) => ({ input: { case: "data", value: bytes(text) } });

  /** Repeats what is typed, ends at "q". */
  function echo(): { handle: TerminalHandle; seen: string[] } {
    const seen: string[] = [];
    const output = new TransformStream<Uint8Array, Uint8Array>(
      undefined,
      { highWaterMark: 100 },
      { highWaterMark: 100 },
    );
    const writer = output.writable.getWriter();
    const exit = Promise.withResolvers<typeof END>();
    let ended = false;
    const end = async (exitCode: number) => {
      if (ended) return;
      ended = true;
      await writer.close();
      exit.resolve({ ...END, exitCode });
    };
    const handle: TerminalHandle = {
      output: output.readable,
      exit: exit.promise,
      async write(text) {
        if (ended) throw new Error("it ended");
        seen.push(Buffer.from(text).toString());
        await writer.write(text);
        if (Buffer.from(text).toString() === "q") await end(3);
      },
      async resize({ columns, rows }) {
        seen.push(`${columns}x${rows}`);
      },
      async close() {
        seen.push("close");
        await end(137);
      },
    };
    return { handle, seen };
  }

  test("takes what is typed and tells its end", async () => {
    const { handle, seen } = echo();
    const { transport } = bench({ sandboxes: { openTerminal: async () => handle } });
    const inputs = [open, typed("a"), { input: { case: "resize", value: { columns: 90, rows: 30 } } }, typed("q")];
    const outputs = (await call(transport, "OpenTerminal", inputs)) as TerminalOutput[];
    expect(Buffer.concat(outputs.map((each) => each.data)).toString()).toBe("aq");
    expect(outputs.at(-1)?.exitCode).toBe(3);
    expect(seen).toEqual(["a", "90x30", "q", "close"]);
  });

  test("outlives the end of its input, and what is typed after its own end", async () => {
    const { handle } = echo();
    const { transport } = bench({ sandboxes: { openTerminal: async () => handle } });
    void aWhile(20).then(() => handle.write(bytes("q")));
    const outputs = (await call(transport, "OpenTerminal", [open, typed("a")])) as TerminalOutput[];
    expect(outputs.at(-1)?.exitCode).toBe(3);

    const second = echo();
    const { transport: again } = bench({ sandboxes: { openTerminal: async () => second.handle } });
    const late = (await call(again, "OpenTerminal", [open, typed("q"), typed("x"), typed("y")])) as TerminalOutput[];
    expect(late.at(-1)?.exitCode).toBe(3);
  });

  test.each([
    ["a second open", open, "open already received"],
    [
      "an absurd size",
      { input: { case: "resize", value: { columns: 1, rows: 70_000 } } },
      "a terminal has at most 65535 columns and rows",
    ],
  ])("is closed for %s", async (_title, input, message) => {
    const { handle, seen } = echo();
    const { transport } = bench({ sandboxes: { openTerminal: async () => handle } });
    expect(await refusalOf(call(transport, "OpenTerminal", [open, typed("a"), input]))).toMatchObject({
      code: "InvalidArgument",
      message,
    });
    expect(seen).toContain("close");
  });

  test("is closed when its caller goes away", async () => {
    const { handle, seen } = echo();
    const { transport } = bench({ sandboxes: { openTerminal: async () => handle } });
    const controller = new AbortController();
    void aWhile(20).then(() => controller.abort());
    async function* requests() {
      yield open;
      await once(controller.signal, "abort");
      throw new ConnectError("gone", Code.Canceled);
    }
    const working = (async () => {
      const response = await transport.stream(
        SandboxService.method.openTerminal,
        controller.signal,
        undefined,
        undefined,
        requests() as never,
      );
      await Array.fromAsync(response.message);
    })();
    expect((await failureOf(working)).code).toBe(Code.Canceled);
    await eventually(() => expect(seen).toContain("close"));
  });
});

describe("a command that is talked to", () => {
  const start = { input: { case: "start", value: { sandboxId, command: "cat" } } };
  const said = (text: string) => ({ input: { case: "stdin", value: bytes(text) } });

  /** A command that says what it hears, and ends with its input or when it hears "q". */
  async function* echo({ stdin, signal }: ExecCall): AsyncGenerator<ExecPart> {
    if (stdin === undefined || stdin instanceof Uint8Array) throw new Error("there is no stream of input");
    for await (const data of stdin) {
      yield { kind: "stdout", data: Buffer.from(data) };
      if (Buffer.from(data).toString() === "q") break;
    }
    if (signal?.aborted) throw new RuntimeError("CANCELLED", "cancelled");
    yield { kind: "exit", end: END };
  }
  const open = () => bench({ sandboxes: { execStream: (_caller, _id, request) => echo(request) } });

  /** Sends what `requests` gives, and gives the answers as they come. */
  async function* talk(requests: AsyncIterable<object>, signal?: AbortSignal): AsyncGenerator<ExecOutput> {
    const { transport } = open();
    const method = SandboxService.method.execInteractive;
    yield* (await transport.stream(method, signal, undefined, undefined, requests as never)).message;
  }

  test("hears the next word after its answer to the last, in one process too", async () => {
    const turns = ["one", "two", "three"].map((word) => ({ word, answered: Promise.withResolvers<void>() }));
    async function* requests() {
      yield start;
      for (const { word, answered } of turns) {
        yield said(word);
        await answered.promise;
      }
    }
    const heard: string[] = [];
    for await (const { data, exitCode } of talk(requests())) {
      heard.push(exitCode === undefined ? Buffer.from(data).toString() : `exit ${exitCode}`);
      turns.find(({ word }) => word === heard.at(-1))?.answered.resolve();
    }
    expect(heard).toEqual(["one", "two", "three", "exit 3"]);
  });

  test("ends without its client's leave", async () => {
    async function* requests() {
      yield start;
      yield said("q");
      await new Promise<never>(() => {});
    }
    const outputs = await Array.fromAsync(talk(requests()));
    expect(outputs.at(-1)?.exitCode).toBe(3);
  });

  test("does not take the failure of its client for the end of its input", async () => {
    async function* requests() {
      yield start;
      yield said("half a wo");
      throw new ConnectError("gone", Code.Canceled);
    }
    expect((await failureOf(Array.fromAsync(talk(requests())))).code).toBe(Code.Canceled);
  });

  test("is ended for a second start", async () => {
    const { transport } = open();
    expect(await refusalOf(call(transport, "ExecInteractive", [start, said("a"), start]))).toMatchObject({
      code: "InvalidArgument",
      message: "start already received",
    });
  });
});

test("a diff that no message can hold comes in several", async () => {
  const change = { kind: "modified", path: "/a", oldPath: "", type: "file", size: 1, sensitive: false } as const;
  const { transport } = bench(
    {
      sandboxes: {
        diff: () => streamOf([{ change, unified: `+${"\u{1f333}".repeat(50_000)}`, binary: false, more: false }]),
      },
    },
    { maxMessageBytes: 64 * 1024 },
  );
  const diffs = (await call(transport, "DiffChanges", [{ sandboxId }])) as unknown as {
    unified: string;
    more: boolean;
  }[];
  expect(diffs.map(({ unified }) => unified).join("")).toBe(`+${"\u{1f333}".repeat(50_000)}`);
  expect(diffs.map(({ more }) => more)).toEqual([...diffs.slice(1).map(() => true), false]);
  expect(diffs.length).toBeGreaterThan(1);
});

test.each([
  ["beyond the last year", 1e17, "9999-12-31T23:59:59Z"],
  ["before the first", -1e17, "0001-01-01T00:00:00Z"],
  ["before 1970", -0.5, "1969-12-31T23:59:59.999500Z"],
])("a file's time %s does not break its listing", async (_title, modifiedAtMs, expected) => {
  const view = { path: "/a", kind: "file", size: 0, mode: 0, target: "", modifiedAtMs, permission: "write" } as const;
  const { transport } = bench({ sandboxes: { listDirectory: async () => [view] } });
  expect(await callJson(transport, "ListDirectory", [{ sandboxId }])).toMatchObject([
    { files: [{ modifiedAt: expected }] },
  ]);
});
