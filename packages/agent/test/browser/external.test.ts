import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aWhile, eventually } from "../../../../test/support/eventually.ts";
import type { BrowserAction } from "../../src/browser/action.ts";
import type { BrowserEvent, BrowserResult } from "../../src/browser/result.ts";
import { BrowserRouter } from "../../src/browser/router.ts";
import { CallbackConfirmationService } from "../../src/confirmation/callback.ts";
import type { ConfirmationRequest } from "../../src/confirmation/confirmation.ts";
import { AgentWorkspace } from "../../src/workspace/agent-workspace.ts";
import { contentOf, redirectTo, restlessPage } from "./pages.ts";
import { browserHomes, browserProcess, chromiumProcesses, isAlive } from "./processes.ts";
import { TestSite } from "./site.ts";

// One browser for all of these: starting one takes longer than what is done with it.

let directory: string;
let workspace: AgentWorkspace;
let elsewhere: TestSite;
let site: TestSite;
let router: BrowserRouter;
const udp = createSocket("udp4");
let datagrams = 0;
const events: BrowserEvent[] = [];
const asked: ConfirmationRequest[] = [];
let isApproved = false;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "agentfense-test-"));
  workspace = new AgentWorkspace("external", { directory });
  elsewhere = await TestSite.open();
  udp.on("message", () => {
    datagrams += 1;
  });
  udp.bind(0, "127.0.0.1");
  await once(udp, "listening");
  site = await TestSite.open(
    contentOf((path) => {
      if (path === "/restless") return restlessPage(elsewhere.origin, `127.0.0.1:${udp.address().port}`);
      if (path === "/to-elsewhere") return redirectTo(`${elsewhere.origin}/redirected`);
      if (path === "/to-article") return redirectTo("/article");
      return path === "/worker.js" ? { headers: { "Content-Type": "text/javascript" }, body: "" } : undefined;
    }),
  );
  router = new BrowserRouter("external", {
    workspace,
    urls: { allow: [`${site.origin}/**`, "https://*/**"] },
    maxDownloadBytes: 200_000,
    onEvent: (event) => void events.push(event),
    confirmation: new CallbackConfirmationService((request) => {
      asked.push(request);
      return isApproved;
    }),
  });
});

afterAll(async () => {
  await router?.close();
  udp.close();
  await site?.[Symbol.asyncDispose]();
  await elsewhere?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** What was done, or why it was not, which fails the test. */
async function done(action: BrowserAction): Promise<BrowserResult> {
  const result = await router.execute(action);
  expect(result).toMatchObject({ success: true, route: "external", action: action.action });
  return result;
}

async function evaluated(expression: string): Promise<unknown> {
  return (await done({ action: "evaluate", params: { expression } })).data;
}

const open = (path: string): Promise<BrowserResult> =>
  done({ action: "navigate", params: { url: `${site.origin}${path}` } });

describe("an external browser", () => {
  test("goes to a page and tells where it is", async () => {
    const { durationMs, ...result } = await open("/article");
    expect(result).toEqual({
      success: true,
      action: "navigate",
      route: "external",
      url: `${site.origin}/article`,
      title: "On boxes!",
      data: { status: 200 },
      risk: { level: "LOW", detected: [] },
    });
    expect(durationMs).toBeGreaterThan(0);
    expect(router.route).toBe("external");
  });

  test("reads a page as text, as Markdown and as HTML", async () => {
    await open("/article");
    const { text } = await done({ action: "text" });
    expect(text).toContain("A box has walls and a lid.");
    expect(text).not.toContain("secret");
    expect((await done({ action: "text", params: { selector: "h1" } })).text).toBe("On boxes");
    expect((await done({ action: "html", params: { selector: "h1" } })).text).toBe("<h1>On <em>boxes</em></h1>");
    expect((await done({ action: "markdown" })).text).toBe(
      [
        "# On *boxes*",
        `A box has **walls** and a [lid](${site.origin}/lid).`,
        "- wood\n- steel\n  3. thin\n  4. thick",
        "```\nopen(box);\n  look();\n```",
        "Say `close()`.",
        "> Shut it.",
        "| Kind | Price |\n| --- | --- |\n| small\\|flat | 3 |",
        "![a box]",
      ].join("\n\n"),
    );
  });

  test("clicks, fills, presses and scrolls", async () => {
    await open("/form");
    expect((await done({ action: "fill", params: { selector: "#who", text: "Ada" } })).risk.level).toBe("MEDIUM");
    await done({ action: "click", params: { selector: "#send" } });
    expect((await done({ action: "text", params: { selector: "#done" } })).text).toBe("sent Ada");
    await done({ action: "fill", params: { selector: "#who", text: "Bob" } });
    await done({ action: "press", params: { key: "!", selector: "#who" } });
    await done({ action: "press", params: { key: "Enter" } });
    expect((await done({ action: "text", params: { selector: "#done" } })).text).toBe("sent Bob!");
    await done({ action: "scroll", params: { y: 300 } });
    expect(await evaluated("scrollY")).toBe(300);
    await done({ action: "scroll", params: { selector: "#end" } });
    expect(await evaluated("scrollY")).toBeGreaterThan(3000);
    await done({ action: "scroll", params: { y: -100_000 } });
    const place = (await evaluated("(({ x, y }) => ({ x: x + 5, y: y + 5 }))(send.getBoundingClientRect())")) as {
      x: number;
      y: number;
    };
    await done({ action: "fill", params: { selector: "#who", text: "Eve" } });
    await done({ action: "click", params: place });
    expect((await done({ action: "text", params: { selector: "#done" } })).text).toBe("sent Eve");
  });

  test("goes back and forward, and reloads", async () => {
    await open("/form");
    await open("/to-article");
    expect((await done({ action: "back" })).title).toBe("Form");
    expect((await done({ action: "forward" })).url).toBe(`${site.origin}/article`);
    site.seen.length = 0;
    await done({ action: "reload" });
    expect(site.seen).toContain("GET /article");
  });

  test("takes pictures", async () => {
    await open("/form");
    const picture = async (params: { readonly fullPage?: boolean; readonly path?: string }) =>
      Buffer.from((await done({ action: "screenshot", params })).screenshot ?? []);
    const view = await picture({ path: "shots/view.png" });
    expect(sizeOfPng(view)).toEqual({ width: 1280, height: 720 });
    expect(Buffer.compare(await workspace.readFileBytes("shots/view.png"), view)).toBe(0);
    expect(sizeOfPng(await picture({ fullPage: true })).height).toBeGreaterThan(5000);
    expect(await router.execute({ action: "screenshot", params: { path: "../evil.png" } })).toMatchObject({
      success: false,
      errorCode: "INVALID_ACTION",
    });
  });

  test("waits for what is to come, and not for ever", async () => {
    await open("/form");
    await done({ action: "click", params: { selector: "#late" } });
    await done({ action: "wait", params: { selector: "#came", timeoutMs: 20_000 } });
    await done({ action: "wait", params: { state: "load" } });
    await done({ action: "wait", params: { ms: 5 } });
    expect(await router.execute({ action: "wait", params: { selector: "#never", timeoutMs: 100 } })).toMatchObject({
      success: false,
      errorCode: "ACTION_FAILED",
      error: expect.stringContaining("100ms"),
      url: `${site.origin}/form`,
    });
  });

  test("gives the value of an expression, if it has one that can be told", async () => {
    expect(await evaluated("({ a: [1, 'two', null] })")).toEqual({ a: [1, "two", null] });
    expect(await evaluated("Promise.resolve(3)")).toBe(3);
    expect(await evaluated("undefined")).toBeUndefined();
    const failures = ["nothing.there", "'x'.repeat(1_000_000)", "Promise.reject(new Error('no'))"];
    for (const expression of failures)
      expect(await router.execute({ action: "evaluate", params: { expression } })).toMatchObject({
        success: false,
        errorCode: "ACTION_FAILED",
      });
  });

  test("answers no dialogs, and is not held up by them", async () => {
    await open("/form");
    await done({ action: "click", params: { selector: "#loud" } });
    expect((await done({ action: "text", params: { selector: "#done" } })).text).toBe("falsenull");
  });

  test("has tabs: new ones, those that pages open, and not too many", async () => {
    await open("/form");
    const list = () => done({ action: "tabs", params: { op: "list" } });
    await done({ action: "click", params: { selector: "#popup" } });
    const activity = async () => (await list()).tabs?.map(({ active }) => active);
    await eventually(async () => expect(await activity()).toEqual([true, false]));
    await done({ action: "tabs", params: { op: "activate", index: 1 } });
    await done({ action: "wait", params: { state: "load" } });
    expect((await done({ action: "text", params: { selector: "h1" } })).text).toBe("On boxes");
    const third = await done({ action: "tabs", params: { op: "new", url: `${site.origin}/form` } });
    expect(third).toMatchObject({ url: `${site.origin}/form`, title: "Form" });
    for (let count = 3; count < 8; count++) await done({ action: "tabs", params: { op: "new" } });
    expect(await router.execute({ action: "tabs", params: { op: "new" } })).toMatchObject({
      success: false,
      error: expect.stringContaining("8 tabs"),
    });
    for (let index = 7; index > 0; index--) await done({ action: "tabs", params: { op: "close", index } });
    expect(await router.execute({ action: "tabs", params: { op: "activate", index: 1 } })).toMatchObject({
      success: false,
    });
    expect((await list()).tabs).toMatchObject([{ title: "Form", active: true }]);
  });
});

describe("downloads", () => {
  test("go into the workspace: an address, whatever it is, and what a click gives", async () => {
    await open("/downloads");
    const page = await done({ action: "download", params: { url: `${site.origin}/to-article`, path: "a/page.html" } });
    expect(page.data).toMatchObject({ path: "a/page.html", url: `${site.origin}/article` });
    expect(await workspace.readFile("a/page.html")).toContain("<title>On boxes</title>");
    await done({ action: "download", params: { url: `${site.origin}/file`, path: "file" } });
    expect(await workspace.readFile("file")).toBe("a file");
    for (const [selector, content] of [
      ["#file", "a file"],
      ["#blob", "from the page"],
    ] as const) {
      const clicked = await done({ action: "download", params: { selector, path: "clicked" } });
      expect(clicked.data).toMatchObject({ path: "clicked", bytes: content.length });
      expect(await workspace.readFile("clicked")).toBe(content);
    }
    // It is where it was.
    expect((await done({ action: "text", params: { selector: "title" } })).url).toBe(`${site.origin}/downloads`);
  });

  test("that are too large, failed or none are refused", async () => {
    await open("/downloads");
    for (const [params, error] of [
      [{ url: `${site.origin}/huge` }, "more than 200000 bytes"],
      [{ selector: "#huge" }, "more than 200000 bytes"],
      [{ url: `${site.origin}/gone` }, "410"],
      [{ selector: "#quiet", timeoutMs: 3_000 }, "no file came"],
    ] as const) {
      const result = await router.execute({ action: "download", params: { ...params, path: "refused" } });
      expect(result).toMatchObject({
        success: false,
        errorCode: "ACTION_FAILED",
        error: expect.stringContaining(error),
      });
    }
    await expect(workspace.stat("refused")).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test("happen at no other time", async () => {
    await open("/downloads");
    const [home = ""] = browserHomes();
    const saved = () => (existsSync(join(home, "downloads")) ? readdirSync(join(home, "downloads")) : []);
    const before = saved();
    site.seen.length = 0;
    await router.execute({ action: "click", params: { selector: "#file" } });
    await eventually(() => expect(site.seen).toContain("GET /file"));
    await done({ action: "text" });
    expect(saved()).toEqual(before);
  });
});

describe("what is not allowed", () => {
  test("is not reached by a page, a frame, a worker, a redirect, a WebSocket or a datagram", async () => {
    await open("/restless");
    await done({ action: "wait", params: { selector: "#tried" } });
    const urls = new Set(events.flatMap((event) => (event.type === "request_blocked" ? [event.url] : [])));
    const { host } = new URL(elsewhere.origin);
    const blocked = ["page-fetch", "worker-fetch", "iframe", "img", "script", "object", "beacon", "redirected"];
    expect([...urls]).toEqual(expect.arrayContaining([...blocked.map((path) => `${elsewhere.origin}/${path}`), host]));
    expect({ seen: elsewhere.seen, datagrams }).toEqual({ seen: [], datagrams: 0 });
    expect(site.seen).toContain("GET /to-elsewhere");
    expect(site.seen).not.toContain("GET /worker.js");
  });

  test("is not gone to, by itself or behind a redirect", async () => {
    const refused = (url: string) => router.execute({ action: "navigate", params: { url } });
    expect(await refused(`${site.origin}/to-elsewhere`)).toMatchObject({
      success: false,
      errorCode: "URL_NOT_ALLOWED",
      error: `${elsewhere.origin}/redirected: it is not among what is allowed`,
      blocked: [{ url: `${elsewhere.origin}/redirected` }],
    });
    for (const url of [
      elsewhere.origin,
      `http://127.0.0.1:${site.port}@127.0.0.1:${elsewhere.port}/`,
      "file:///etc/passwd",
      "view-source:file:///etc/passwd",
      `view-source:${site.origin}/article`,
      "chrome://version",
      "data:text/html,x",
      "javascript:1",
      "https://127.0.0.1/",
    ])
      expect(await refused(url), url).toMatchObject({ success: false, errorCode: "URL_NOT_ALLOWED" });
    const tab = await router.execute({ action: "tabs", params: { op: "new", url: elsewhere.origin } });
    expect(tab).toMatchObject({ success: false, errorCode: "URL_NOT_ALLOWED" });
    const download = await router.execute({
      action: "download",
      params: { url: `${site.origin}/to-elsewhere`, path: "x" },
    });
    expect(download).toMatchObject({ success: false, errorCode: "URL_NOT_ALLOWED" });
    expect(elsewhere.seen).toEqual([]);
    await open("/article");
  });

  test("is nothing that is not an action", async () => {
    for (const action of [
      { action: "explode", params: {} },
      { action: "constructor" },
      { action: "navigate", params: {} },
      { action: "click", params: { selector: "a", x: 1, y: 1 } },
      { action: "click", params: { x: 1 } },
      { action: "text", params: { selectors: "a" } },
      { action: "tabs", params: { op: "close" } },
    ])
      expect(await router.execute(action)).toMatchObject({ success: false, errorCode: "INVALID_ACTION" });
  });
});

describe("risky code in a page", () => {
  const expression = "eval(atob('ZG9jdW1lbnQudGl0bGU='))";

  test("is not run when somebody says no, or nobody is there", async () => {
    await open("/article");
    isApproved = false;
    const denied = await router.execute({ action: "evaluate", params: { expression } });
    expect(denied).toMatchObject({ success: false, errorCode: "DENIED", risk: { level: "CRITICAL" } });
    expect(asked.at(-1)).toMatchObject({
      sessionId: "external",
      action: "browser.evaluate",
      code: JSON.stringify({ action: "evaluate", params: { expression }, route: "external" }),
      risk: denied.risk,
    });
    await using alone = new BrowserRouter("alone", { workspace });
    const result = await alone.execute({ action: "evaluate", params: { expression } });
    expect(result).toMatchObject({
      success: false,
      errorCode: "DENIED",
      error: expect.stringContaining("nobody to ask"),
    });
    expect(alone.route).toBeUndefined();
  });

  test("is run when somebody agreed to exactly this", async () => {
    await open("/article");
    isApproved = true;
    expect(await evaluated(expression)).toBe("On boxes!");
    const types = events.map(({ type }) => type).slice(-4);
    expect(types).toEqual(["assessed", "confirmation_requested", "confirmation_answered", "finished"]);
  });
});

describe("trouble", () => {
  test("a page that never answers loses its tab", async () => {
    await open("/article");
    const stuck = await router.execute({ action: "evaluate", params: { expression: "while (true);", timeoutMs: 100 } });
    expect(stuck).toMatchObject({
      success: false,
      errorCode: "ACTION_FAILED",
      error: expect.stringContaining("100 ms"),
    });
    await open("/article");
  });

  test("aborting throws the reason at once, and the next action finds a browser", async () => {
    await open("/form");
    const leaving = new AbortController();
    const waiting = router.execute({ action: "wait", params: { ms: 60_000 } }, {}, { signal: leaving.signal });
    const queued = router.execute({ action: "wait", params: { ms: 60_000 } }, {}, { signal: leaving.signal });
    const reason = new Error("enough");
    void aWhile(50).then(() => leaving.abort(reason));
    await expect(waiting).rejects.toBe(reason);
    await expect(queued).rejects.toBe(reason);
    await expect(router.execute({ action: "text" }, {}, { signal: leaving.signal })).rejects.toBe(reason);
    await open("/form");
  });

  test("a browser that is none, or never ready, is not waited for", async () => {
    const executablePath = join(directory, "chromium");
    for (const [script, openTimeoutMs, error] of [
      ["echo it broke >&2; exit 3", 60_000, "the browser said: it broke"],
      ["exit 3", 60_000, "the browser has ended"],
      ["printf 'hello\\0' >&4; cat <&3 >/dev/null", 60_000, "the browser said: hello"],
      ["exec sleep 600", 300, "no browser was ready within 300 ms"],
    ] as const) {
      await writeFile(executablePath, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      await using broken = new BrowserRouter("broken", { workspace, executablePath, openTimeoutMs });
      const result = await broken.execute({ action: "text" });
      expect(result).toMatchObject({ success: false, errorCode: "UNAVAILABLE", error: expect.stringContaining(error) });
    }
  });

  test("a browser that died is replaced", async () => {
    await open("/article");
    const first = chromiumProcesses();
    process.kill(browserProcess(), "SIGKILL");
    await eventually(() => expect(router.route).toBeUndefined());
    await open("/form");
    expect(chromiumProcesses().filter((one) => first.includes(one))).toEqual([]);
  });

  test("nothing is left when it is closed, and nothing comes after", async () => {
    await open("/form");
    const running = chromiumProcesses();
    const homes = browserHomes();
    expect(homes.filter((home) => existsSync(home))).toHaveLength(1);
    const busy = router.execute({ action: "wait", params: { ms: 60_000 } });
    await router.close();
    expect(await busy).toMatchObject({ success: false, errorCode: "UNAVAILABLE" });
    await eventually(() => expect(running.filter(isAlive)).toEqual([]));
    expect(await router.execute({ action: "text" })).toMatchObject({ success: false, errorCode: "UNAVAILABLE" });
    expect(chromiumProcesses()).toEqual([]);
    expect(homes.filter((home) => existsSync(home))).toEqual([]);
    await router.close();
  });
});

function sizeOfPng(png: Buffer): { readonly width: number; readonly height: number } {
  expect(png.subarray(0, 8).toString("latin1")).toBe("\x89PNG\r\n\x1a\n");
  return { width: png.readUInt32BE(16), height: png.readUInt32BE(20) };
}
