// Checked by the compiler: a wrong expectation is a type error of this file, which `npm run check:types` reports.

import {
  type ApplyResult,
  type AuditEvent,
  type Change,
  type CommandExecutionError,
  type CommandTimeoutError,
  type Execution,
  type FileChange,
  type FileDiff,
  type Listing,
  type Rule,
  type RunResult,
  Sandbox,
  type SandboxClient,
  type SandboxError,
  type SandboxInfo,
  type Session,
} from "agentfense";
import { describe, expectTypeOf, test } from "vitest";

declare const sandbox: Sandbox;
declare const client: SandboxClient;

/** Never called: only its types matter. */
type Checked = () => Promise<void>;

describe("types are inferred", () => {
  test("opening", () => {
    expectTypeOf(Sandbox.fromLocal).returns.resolves.toEqualTypeOf<Sandbox>();
    expectTypeOf(Sandbox.fromCodebase).returns.resolves.toEqualTypeOf<Sandbox>();
    expectTypeOf(Sandbox.create).returns.resolves.toEqualTypeOf<Sandbox>();
    expectTypeOf(Sandbox.connect).returns.resolves.toEqualTypeOf<Sandbox>();
    expectTypeOf(Sandbox.getOrCreate).returns.resolves.toEqualTypeOf<Sandbox>();
    expectTypeOf(Sandbox.list).returns.toEqualTypeOf<Listing<SandboxInfo>>();
    expectTypeOf<Sandbox>().toExtend<AsyncDisposable>();
    expectTypeOf<SandboxClient>().toExtend<AsyncDisposable>();
    expectTypeOf<Session>().toExtend<AsyncDisposable>();
    expectTypeOf<Execution>().toExtend<AsyncDisposable>();
  });

  test("results of commands", () => {
    expectTypeOf<Sandbox["run"]>().returns.resolves.toEqualTypeOf<RunResult>();
    expectTypeOf<RunResult>().toHaveProperty("exitCode").toEqualTypeOf<number>();
    expectTypeOf<RunResult>().toHaveProperty("stdout").toEqualTypeOf<string>();
    expectTypeOf<RunResult>().toHaveProperty("signal").toEqualTypeOf<string | undefined>();
    expectTypeOf<RunResult>().toHaveProperty("timedOut").toEqualTypeOf<boolean>();
    expectTypeOf<RunResult>().toHaveProperty("truncated").toEqualTypeOf<boolean>();
    expectTypeOf<RunResult>().toHaveProperty("durationMs").toEqualTypeOf<number>();
    expectTypeOf<Sandbox["exec"]>().returns.resolves.toEqualTypeOf<Execution>();
    expectTypeOf<Execution["stdout"]>().toEqualTypeOf<ReadableStream<Uint8Array>>();
    expectTypeOf<Session["exec"]>().returns.resolves.toEqualTypeOf<RunResult>();
  });

  test("files, by what is asked for", () => {
    const _checked: Checked = async () => {
      expectTypeOf(await sandbox.files.readFile("a")).toEqualTypeOf<Uint8Array>();
      expectTypeOf(await sandbox.files.readFile("a", "utf8")).toEqualTypeOf<string>();
      expectTypeOf(await sandbox.files.readFile("a", { encoding: "utf8" })).toEqualTypeOf<string>();
      expectTypeOf(await sandbox.files.readdir("a")).toEqualTypeOf<string[]>();
      expectTypeOf((await sandbox.files.readdir("a", { withFileTypes: true }))[0]!.isFile()).toEqualTypeOf<boolean>();
      for await (const change of sandbox.files.watch("a")) expectTypeOf(change).toEqualTypeOf<FileChange>();
    };
  });

  test("changes and events", () => {
    const _checked: Checked = async () => {
      for await (const change of sandbox.changes()) expectTypeOf(change).toEqualTypeOf<Change>();
      for await (const diff of sandbox.diff()) expectTypeOf(diff).toEqualTypeOf<FileDiff>();
      for await (const event of sandbox.events()) expectTypeOf(event).toEqualTypeOf<AuditEvent>();
      expectTypeOf(await sandbox.diff().text()).toEqualTypeOf<string>();
      expectTypeOf(await sandbox.apply()).toEqualTypeOf<ApplyResult>();
      expectTypeOf(await sandbox.permissions.get()).toExtend<readonly Rule[]>();
      expectTypeOf(await client.listSandboxes().toArray()).toEqualTypeOf<SandboxInfo[]>();
    };
  });

  test("errors carry what their kind knows", () => {
    expectTypeOf<CommandExecutionError["result"]>().toEqualTypeOf<RunResult>();
    expectTypeOf<CommandTimeoutError["result"]>().toEqualTypeOf<RunResult>();
    expectTypeOf<CommandExecutionError>().toExtend<SandboxError>();
    expectTypeOf<SandboxError>().toHaveProperty("retryable").toEqualTypeOf<boolean>();
    expectTypeOf<SandboxError>().toHaveProperty("hint").toEqualTypeOf<string | undefined>();
    expectTypeOf<SandboxError["code"]>().not.toEqualTypeOf<string>();
  });

  test("what is wrong is refused", () => {
    const _checked: Checked = async () => {
      // @ts-expect-error a level is one of four words
      await Sandbox.fromLocal(".", { permissions: [{ pattern: "**/*", permission: "readonly" }] });
      // @ts-expect-error times are in milliseconds, and say so
      await sandbox.run("true", { timeout: 5 });
      // @ts-expect-error a program needs a name
      await sandbox.run([]);
      // @ts-expect-error an option that is not there
      await sandbox.apply({ path: "/a" });
      // @ts-expect-error a runtime that is not there
      await Sandbox.create({ runtime: "gvisor" });
      // @ts-expect-error results do not change
      (await sandbox.run("true")).exitCode = 0;
    };
  });

  test("a command may be fixed words", () => {
    const _checked: Checked = async () => {
      await sandbox.run(["git", "status"]);
      const words = ["git", "log"] as const;
      await sandbox.run(words);
    };
  });
});
