import { expect, test } from "vitest";
import { z } from "zod";
import { AutoApproveConfirmationService, AutoDenyConfirmationService } from "../../src/confirmation/callback.ts";
import type { ConfirmationAnswer, ConfirmationRequest } from "../../src/confirmation/confirmation.ts";
import { requestHash } from "../../src/confirmation/hash.ts";
import { type BrowserDriver, declareTool } from "../../src/tools/tool.ts";
import type { RiskLevel, SecurityMode } from "../../src/types.ts";
import type { WorldEvent } from "../../src/world/world.ts";
import { fileWorld } from "../tools/support.ts";

const EFFECTS = { readOnly: false, destructive: true, openWorld: false };

/** A tool that says what it was given. */
function rated(risk: RiskLevel) {
  return declareTool({
    name: "own",
    description: "A tool of somebody's own.",
    input: z.strictObject({ word: z.string() }),
    risk: () => risk,
    effects: EFFECTS,
    handler: async ({ word }) => ({ text: `did ${word}`, data: { word } }),
  });
}

test("there are the tools that were asked for, each with a schema; those of a browser only with one", async () => {
  const browser: BrowserDriver = { execute: async () => ({ success: true }) };
  const names = (tools: readonly { readonly name: string }[]) => tools.map(({ name }) => name);
  const FILES = ["run_code", "shell", "read_file", "write_file", "edit_file", "list_files", "search"];
  const BROWSER = "navigate click fill press scroll text screenshot evaluate wait tabs download".split(" ");
  expect(names((await fileWorld()).world.tools())).toEqual(FILES);
  const all = (await fileWorld({ browser })).world.tools();
  expect(names(all)).toEqual([...FILES, ...BROWSER.map((name) => `browser_${name}`)]);
  for (const { inputSchema, description } of all) {
    expect(inputSchema).toMatchObject({ type: "object", additionalProperties: false });
    expect(inputSchema).not.toHaveProperty("$schema");
    expect(description).toMatch(/\.$/);
  }
  expect(all.filter(({ effects }) => effects.readOnly).map(({ name }) => name)).toEqual([
    "read_file",
    "list_files",
    "search",
    "browser_scroll",
    "browser_text",
    "browser_wait",
  ]);
});

test.each([
  ["frobnicate", {}, 'there is no tool "frobnicate"; there are run_code, shell,'],
  ["constructor", {}, 'there is no tool "constructor"'],
  ["__proto__", {}, 'there is no tool "__proto__"'],
  ["browser_navigate", { url: "http://a" }, 'there is no tool "browser_navigate"'],
  ["read_file", {}, "the input does not fit: path: "],
  ["read_file", undefined, "the input does not fit: path: "],
  ["read_file", "path", "the input does not fit: "],
  ["read_file", ["path"], "the input does not fit: "],
  ["read_file", { path: 7 }, "the input does not fit: path: "],
  ["read_file", { path: "a", colour: "red" }, 'the input does not fit: Unrecognized key: "colour"'],
  ["run_code", { code: "1", language: "cobol" }, "the input does not fit: language: "],
  ["shell", { command: "true", timeout_ms: 0 }, "the input does not fit: timeout_ms: "],
])("%s with %j is an answer that says what is wrong", async (tool, input, text) => {
  const { world } = await fileWorld();
  expect(await world.execute(tool, input)).toEqual({ text: expect.stringContaining(text), isError: true });
});

test("what fails inside is an answer that tells nothing of it, and an event that tells all", async () => {
  const events: WorldEvent[] = [];
  const { world } = await fileWorld({ onEvent: (event) => events.push(event) });
  const { text, isError } = await world.execute("shell", { command: "true" });
  expect({ text, isError }).toEqual({ text: "it could not be done: something failed inside", isError: true });
  expect(events.map(({ type }) => type)).toEqual(["called", "failed"]);
  expect(events[1]).toMatchObject({ error: new Error("no test here runs code") });
});

test("a signal throws its reason, before the call and during it", async () => {
  const waiting = Promise.withResolvers<void>();
  const browser: BrowserDriver = {
    execute: (_action, _context, { signal } = {}) => {
      waiting.resolve();
      return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    },
  };
  const { world } = await fileWorld({ browser });
  const controller = new AbortController();
  const call = world.execute("browser_wait", { ms: 60_000 }, { signal: controller.signal });
  await waiting.promise;
  const reason = new Error("enough");
  controller.abort(reason);
  await expect(call).rejects.toBe(reason);
  await expect(world.execute("list_files", {}, { signal: controller.signal })).rejects.toBe(reason);
});

test("tells each step, keeps the last thousand, and shortens what it was given", async () => {
  const { world, done } = await fileWorld({ sessionId: "s1" });
  const events: WorldEvent[] = [];
  const unsubscribe = world.subscribe((event) => events.push(event));
  await done("write_file", { path: "a", content: "x".repeat(10_000) });
  unsubscribe();
  await done("list_files", {});
  expect(events).toEqual([
    {
      type: "called",
      callId: expect.any(String),
      sessionId: "s1",
      tool: "write_file",
      at: expect.any(Date),
      input: expect.stringMatching(/^\{"path":"a","content":"x{400,}…$/),
    },
    expect.objectContaining({ type: "finished", callId: events[0]!.callId, isError: false }),
  ]);
  expect(world.history).toHaveLength(4);
  for (let round = 0; round < 600; round += 1) await world.execute("none", {});
  expect(world.history).toHaveLength(1000);
});

test.each<[RiskLevel, SecurityMode, boolean]>([
  ["SAFE", "STRICT", false],
  ["LOW", "STRICT", false],
  ["MEDIUM", "STRICT", false],
  ["HIGH", "STRICT", true],
  ["CRITICAL", "STRICT", true],
  ["MEDIUM", "PERMISSIVE", false],
  ["HIGH", "PERMISSIVE", true],
])("a tool rated %s asks in mode %s as the table says: %s", async (level, securityMode, asks) => {
  const asked: ConfirmationRequest[] = [];
  const confirmation = {
    request: async (request: ConfirmationRequest): Promise<ConfirmationAnswer> => {
      asked.push(request);
      return { decision: "approved", hash: requestHash(request) };
    },
  };
  const { world } = await fileWorld({ tools: [rated(level)], securityMode, confirmation });
  expect(await world.execute("own", { word: "it" })).toEqual({ text: "did it", isError: false, data: { word: "it" } });
  expect(asked.map(({ action, code, risk }) => ({ action, code, level: risk.level }))).toEqual(
    asks ? [{ action: "own", code: '{"word":"it"}', level }] : [],
  );
});

test("without agreement nothing is done: a no, nobody to ask, an answer to something else", async () => {
  const tools = [rated("HIGH")];
  const forged = { request: async (): Promise<ConfirmationAnswer> => ({ decision: "approved", hash: "0".repeat(64) }) };
  const NO = "this call was not approved, and nothing was done";
  for (const [confirmation, text] of [
    [new AutoDenyConfirmationService(), NO],
    [forged, `${NO}: the approval is not for what was asked`],
    [undefined, "own needs somebody's agreement, and there is nobody to ask (give the world a confirmation service)"],
  ] as const) {
    const { world } = await fileWorld({ tools, confirmation });
    expect(await world.execute("own", { word: "it" })).toEqual({ text, isError: true });
  }
  const { world } = await fileWorld({ tools, confirmation: new AutoApproveConfirmationService() });
  expect(await world.execute("own", { word: "it" })).toMatchObject({ isError: false });
});

test("a browser action is handed over as it is, with the place it belongs to, and told with its picture", async () => {
  const calls: unknown[] = [];
  const screenshot = Buffer.from("picture");
  const browser: BrowserDriver = {
    execute: async (action, context) => {
      calls.push([action, context]);
      if (action.action === "click") return { success: false, error: "there is no #b", errorCode: "ACTION_FAILED" };
      if (action.action === "tabs") return { success: true, tabs: [{ url: "http://a/", title: "A", active: true }] };
      return { success: true, url: "http://a/", title: "A", screenshot, data: { n: 1 }, text: "" };
    },
  };
  const { world } = await fileWorld({ browser });
  const context = { needsFileAccess: true };
  expect(await world.execute("browser_screenshot", { full_page: true, path: "/workspace/a.png" }, context)).toEqual({
    text: '[A — http://a/]\n(no text)\n{\n "n": 1\n}',
    isError: false,
    data: { success: true, url: "http://a/", title: "A", errorCode: undefined, data: { n: 1 } },
    images: [{ data: screenshot, mimeType: "image/png" }],
  });
  expect(await world.execute("browser_click", { selector: "#b" })).toMatchObject({
    text: "there is no #b",
    isError: true,
  });
  expect((await world.execute("browser_tabs", { op: "list" })).text).toBe("* 0: A http://a/");
  await world.execute("browser_text", { format: "markdown" }, { isResearch: true });
  expect(calls).toEqual([
    [
      { action: "screenshot", params: { fullPage: true, path: "a.png" } },
      { needsFileAccess: true, isResearch: undefined },
    ],
    [{ action: "click", params: { selector: "#b" } }, expect.anything()],
    [{ action: "tabs", params: { op: "list" } }, expect.anything()],
    [
      { action: "markdown", params: {} },
      { needsFileAccess: undefined, isResearch: true },
    ],
  ]);
});
