import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "agentfense";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import type { BrowserAction } from "../../src/browser/action.ts";
import type { BrowserResult } from "../../src/browser/result.ts";
import { BrowserRouter } from "../../src/browser/router.ts";
import { AgentWorkspace } from "../../src/workspace/agent-workspace.ts";
import { PAGES } from "./pages.ts";
import { browserHomes, browserProcess, chromiumProcesses, isAlive } from "./processes.ts";
import { Listener, TestSite } from "./site.ts";

// One browser in a sandbox for most of these: starting one takes longer than what is done with it.

const SECRET = "hunter2-is-the-secret";
const INSIDE = { needsFileAccess: true };
let directory: string;
let router: BrowserRouter;
let listener: Listener;
let site: TestSite;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "agentfense-test-"));
  await mkdir(join(directory, "output"));
  for (const name of ["form", "article"]) await writeFile(join(directory, `${name}.html`), String(PAGES[`/${name}`]));
  await writeFile(join(directory, ".env"), SECRET);
  // An agent that can write here could have written this.
  const policy = 'version: 1\npermissions:\n  - { pattern: "/.env", permission: read, priority: 1000 }\n';
  await writeFile(join(directory, ".agentfense.yaml"), policy);
  await writeFile(join(directory, "plain.txt"), "plain to see");
  await symlink(".env", join(directory, "innocent.txt"));
  await writeFile(
    join(directory, "curious.html"),
    `<!doctype html><title>curious</title><iframe id="frame" src=".env"></iframe>
     <iframe id="control" src="plain.txt"></iframe><object data=".env"></object>
     <script>(async () => {
       const tried = await Promise.allSettled([
         fetch(".env").then((answer) => answer.text()),
         new Promise((resolve, reject) => {
           const request = new XMLHttpRequest();
           request.open("GET", "file:///workspace/.env");
           request.onload = () => resolve(request.responseText);
           request.onerror = () => reject(new Error("no"));
           request.send();
         }),
         import("./.env"),
       ]);
       const textContent = JSON.stringify(tried);
       document.body.append(Object.assign(document.createElement("pre"), { id: "tried", textContent }));
     })()</script>`,
  );
  listener = await Listener.open();
  site = await TestSite.open((path) => PAGES[path]);
  router = new BrowserRouter("inside", {
    workspace: new AgentWorkspace("inside", { directory }),
    sandboxes: Sandbox,
    network: "private",
  });
});

afterAll(async () => {
  await router?.close();
  await listener?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

async function done(action: BrowserAction): Promise<BrowserResult> {
  const result = await router.execute(action, INSIDE);
  expect(result).toMatchObject({ success: true, route: "sandbox", action: action.action });
  return result;
}

const open = (name: string): Promise<BrowserResult> =>
  done({ action: "navigate", params: { url: `file:///workspace/${name}` } });

describe("a browser in a sandbox", () => {
  test("is driven like the other one", async () => {
    expect(await open("article.html")).toMatchObject({
      title: "On boxes!",
      url: "file:///workspace/article.html",
      risk: { level: "MEDIUM" },
    });
    expect((await done({ action: "markdown" })).text).toContain("- wood\n- steel");
    await open("form.html");
    await done({ action: "fill", params: { selector: "#who", text: "Ada" } });
    await done({ action: "press", params: { selector: "#who", key: "Enter" } });
    expect((await done({ action: "text", params: { selector: "#done" } })).text).toBe("sent Ada");
    await done({ action: "scroll", params: { selector: "#end" } });
    const position = await done({ action: "evaluate", params: { expression: "scrollY" } });
    expect(position.data).toBeGreaterThan(3000);
    await done({ action: "click", params: { selector: "#late" } });
    await done({ action: "wait", params: { selector: "#came" } });
    const { screenshot } = await done({ action: "screenshot", params: { path: "output/page.png" } });
    expect(
      Buffer.from(screenshot ?? [])
        .subarray(1, 4)
        .toString(),
    ).toBe("PNG");
    expect(Buffer.compare(await readFile(join(directory, "output/page.png")), screenshot ?? Buffer.of())).toBe(0);
    const { tabs } = await done({ action: "tabs", params: { op: "new", url: "file:///workspace/article.html" } });
    expect(tabs).toHaveLength(2);
    await done({ action: "tabs", params: { op: "close", index: 1 } });
  });

  test("downloads into the workspace", async () => {
    await open("form.html");
    await done({ action: "download", params: { url: "file:///workspace/plain.txt", path: "output/copy.txt" } });
    expect(await readFile(join(directory, "output/copy.txt"), "utf8")).toBe("plain to see");
    const expression = `done.innerHTML = '<a id="link" download href="data:text/plain,made%20here">link</a>'`;
    await done({ action: "evaluate", params: { expression } });
    await done({ action: "download", params: { selector: "#link", path: "output/made.txt" } });
    expect(await readFile(join(directory, "output/made.txt"), "utf8")).toBe("made here");
  });

  test("cannot read a hidden file, by whatever way", async () => {
    await open("plain.txt");
    expect((await done({ action: "text" })).text).toBe("plain to see");
    for (const path of [".env", "innocent.txt", "%2eenv", "output/../.env"]) {
      const result = await router.execute({ action: "navigate", params: { url: `file:///workspace/${path}` } }, INSIDE);
      expect(result).toMatchObject({ success: false, error: expect.stringContaining("net::ERR_FILE_NOT_FOUND") });
    }
    for (const url of [
      "view-source:file:///workspace/.env",
      "file:///workspace/../proc/1/root/workspace/.env",
      "file:///",
    ])
      expect(await router.execute({ action: "navigate", params: { url } }, INSIDE)).toMatchObject({
        success: false,
        errorCode: "URL_NOT_ALLOWED",
      });
    await open("curious.html");
    await done({ action: "wait", params: { selector: "#tried" } });
    const tried = String((await done({ action: "text", params: { selector: "#tried" } })).text);
    expect((JSON.parse(tried) as { status: string }[]).map(({ status }) => status)).toEqual(Array(3).fill("rejected"));
    // What playwright sees in a frame, though the page around it may not look.
    const inFrame = async (id: string) =>
      (await done({ action: "text", params: { selector: `#${id} >> internal:control=enter-frame >> html` } })).text;
    expect(await inFrame("control")).toBe("plain to see");
    expect(await inFrame("frame")).not.toContain(SECRET);
    const download = await router.execute(
      { action: "download", params: { url: "file:///workspace/.env", path: "output/stolen" } },
      INSIDE,
    );
    expect(download).toMatchObject({ success: false });
    const listing = await done({ action: "navigate", params: { url: "file:///workspace/" } });
    expect((await done({ action: "text" })).text).toContain("plain.txt");
    expect((await done({ action: "html" })).text).not.toContain(".env");
    expect(listing.url).toBe("file:///workspace/");
  });

  test("reaches nothing on this machine, though it has a network", async () => {
    const addresses = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .filter(({ scopeid = 0 }) => scopeid === 0)
      .map(({ address, family }) => (family === "IPv6" ? `[${address}]` : address));
    await open("article.html");
    const expression = `Promise.all(${JSON.stringify(["localhost", ...addresses])}.flatMap((host) => [
      fetch("http://" + host + ":${listener.port}/", { mode: "no-cors", signal: AbortSignal.timeout(4000) })
        .catch(() => {}),
      new Promise((resolve) => {
        const socket = new WebSocket("ws://" + host + ":${listener.port}/");
        socket.onopen = socket.onerror = resolve;
        setTimeout(resolve, 4000);
      }),
    ])).then((all) => all.length)`;
    const { data } = await done({ action: "evaluate", params: { expression } });
    expect(data).toBe(2 * (addresses.length + 1));
    const direct = await router.execute(
      { action: "navigate", params: { url: `http://127.0.0.1:${listener.port}/` } },
      { isResearch: true },
    );
    expect(direct).toMatchObject({ success: false, error: expect.stringContaining("net::ERR_") });
    expect(listener.connections).toBe(0);
    const control = await fetch(`http://127.0.0.1:${listener.port}/`).catch(() => "reset");
    expect([control, listener.connections]).toEqual(["reset", 1]);
  });

  test("outlives the signal of the action that opened it", async () => {
    await router.execute({ action: "text" }, {}); // closes it
    const leaving = new AbortController();
    const first = await router.execute({ action: "text" }, INSIDE, { signal: leaving.signal });
    expect(first).toMatchObject({ success: true, route: "sandbox" });
    const running = browserProcess();
    leaving.abort();
    await done({ action: "navigate", params: { url: "about:blank" } });
    expect(browserProcess()).toBe(running);
  });

  test("that died is replaced, and nothing is left of any", async () => {
    await open("article.html");
    const first = chromiumProcesses();
    process.kill(browserProcess(), "SIGKILL");
    await eventually(() => expect(router.route).toBeUndefined());
    await open("article.html");
    const second = chromiumProcesses();
    expect(second.length).toBeGreaterThan(0);
    await router.close();
    await eventually(() => expect([...first, ...second].filter(isAlive)).toEqual([]));
  });
});

test("one browser at a time: the other route closes the first browser", async () => {
  await using both = new BrowserRouter("both", {
    workspace: new AgentWorkspace("both", { directory }),
    sandboxes: Sandbox,
    urls: { allow: [`${site.origin}/**`, "file:///workspace/article.html"] },
  });
  const outside = await both.execute({ action: "navigate", params: { url: `${site.origin}/article` } });
  expect(outside).toMatchObject({ success: true, route: "external" });
  const first = chromiumProcesses();
  expect(browserHomes()).toHaveLength(1);
  // Side by side, but done one after the other.
  const [article, form, web] = await Promise.all([
    both.execute({ action: "navigate", params: { url: "file:///workspace/article.html" } }, INSIDE),
    both.execute({ action: "navigate", params: { url: "file:///workspace/form.html" } }, INSIDE),
    // There is no network, and no other list for this browser.
    both.execute({ action: "navigate", params: { url: `${site.origin}/article` } }, INSIDE),
  ]);
  expect(article).toMatchObject({ success: true, route: "sandbox", title: "On boxes!" });
  expect(form).toMatchObject({ success: false, errorCode: "URL_NOT_ALLOWED" });
  expect(web).toMatchObject({ success: false, errorCode: "ACTION_FAILED" });
  // What a page asks for is looked at like where one goes.
  await both.execute({ action: "navigate", params: { url: "file:///workspace/article.html" } }, INSIDE);
  const expression = `new Promise((resolve) => document.body.append(
    Object.assign(document.createElement("iframe"), { src: "form.html", onload: () => resolve("loaded") })))`;
  const framed = await both.execute({ action: "evaluate", params: { expression } }, INSIDE);
  expect(framed).toMatchObject({ success: true, blocked: [{ url: "file:///workspace/form.html" }] });
  expect(first.filter(isAlive)).toEqual([]);
  expect(browserHomes()).toEqual([]);
  expect(both.route).toBe("sandbox");
});

test("without a sandbox to be had, there is no browser and no other one instead", async () => {
  const { readFile, readFileBytes, writeFile, list, delete: remove, stat } = new AgentWorkspace("none", { directory });
  await using router = new BrowserRouter("none", {
    workspace: { readFile, readFileBytes, writeFile, list, delete: remove, stat },
    sandboxes: Sandbox,
  });
  expect(await router.execute({ action: "text" }, INSIDE)).toMatchObject({ success: false, errorCode: "UNAVAILABLE" });
  await using nowhere = new BrowserRouter("nowhere", {
    workspace: new AgentWorkspace("nowhere", { directory }),
    sandboxes: Sandbox,
    executablePath: "/usr/bin/no-such-browser",
  });
  for (const context of [INSIDE, {}])
    expect(await nowhere.execute({ action: "text" }, context)).toMatchObject({
      success: false,
      errorCode: "UNAVAILABLE",
      error: expect.stringContaining("/usr/bin/no-such-browser"),
    });
});
