import { expectTypeOf, test } from "vitest";
import {
  type AuditEvent,
  type Change,
  type CommandEvent,
  type Execution,
  type FileChange,
  type FileDiff,
  type FileStat,
  type RunResult,
  Sandbox,
  type SandboxFiles,
  type SandboxInfo,
} from "../../src/index.ts";

// The compiler is what tests here: nothing of this runs.
const files = undefined as unknown as SandboxFiles;
const sandbox = undefined as unknown as Sandbox;
const execution = undefined as unknown as Execution;
const unheard = (_use: () => unknown): void => {};

type ItemOf<T> = T extends AsyncIterable<infer Item> ? Item : never;

test("reading a file gives bytes, or text when an encoding is named", () => {
  unheard(() => {
    expectTypeOf(files.readFile("a")).resolves.toEqualTypeOf<Uint8Array>();
    expectTypeOf(files.readFile("a", {})).resolves.toEqualTypeOf<Uint8Array>();
    expectTypeOf(files.readFile("a", { signal: AbortSignal.abort() })).resolves.toEqualTypeOf<Uint8Array>();
    expectTypeOf(files.readFile("a", "utf8")).resolves.toEqualTypeOf<string>();
    expectTypeOf(files.readFile("a", { encoding: "hex" })).resolves.toEqualTypeOf<string>();
    const encoding = undefined as "utf8" | undefined;
    expectTypeOf(files.readFile("a", { encoding })).resolves.toEqualTypeOf<string | Uint8Array>();
    // @ts-expect-error there is no such encoding
    void files.readFile("a", "utf9");
  });
});

test("a directory gives names, or what is known of each", () => {
  unheard(() => {
    expectTypeOf(files.readdir("a")).resolves.toEqualTypeOf<string[]>();
    expectTypeOf(files.readdir("a", { recursive: true })).resolves.toEqualTypeOf<string[]>();
    expectTypeOf(files.readdir("a", { withFileTypes: false })).resolves.toEqualTypeOf<string[]>();
    expectTypeOf(files.readdir("a", { withFileTypes: true })).resolves.toEqualTypeOf<FileStat[]>();
    expectTypeOf<ItemOf<ReturnType<SandboxFiles["watch"]>>>().toEqualTypeOf<FileChange>();
  });
});

test("commands, changes and events", () => {
  unheard(() => {
    expectTypeOf(sandbox.run("true")).resolves.toEqualTypeOf<RunResult>();
    expectTypeOf(sandbox.exec(["echo", "a"])).resolves.toEqualTypeOf<Execution>();
    // @ts-expect-error a program has to be named
    void sandbox.run([]);
    expectTypeOf<ItemOf<typeof execution>>().toEqualTypeOf<CommandEvent>();
    expectTypeOf(execution.stdout).toEqualTypeOf<ReadableStream<Uint8Array>>();
    expectTypeOf<ItemOf<ReturnType<Sandbox["changes"]>>>().toEqualTypeOf<Change>();
    expectTypeOf<ItemOf<ReturnType<Sandbox["diff"]>>>().toEqualTypeOf<FileDiff>();
    expectTypeOf<ItemOf<ReturnType<Sandbox["events"]>>>().toEqualTypeOf<AuditEvent>();
    expectTypeOf(Sandbox.list().toArray()).resolves.toEqualTypeOf<SandboxInfo[]>();
  });
});

test("a sandbox of a key is made of a directory or of a codebase, not of both", () => {
  unheard(() => {
    void Sandbox.getOrCreate("key");
    void Sandbox.getOrCreate("key", { directory: "." });
    void Sandbox.getOrCreate("key", { codebaseId: "cb_0" });
    // @ts-expect-error both
    void Sandbox.getOrCreate("key", { directory: ".", codebaseId: "cb_0" });
    // @ts-expect-error it is always started
    void Sandbox.getOrCreate("key", { start: false });
  });
});
