import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { call, startMcp } from "./mcp-client.ts";
import { instanceOf, isMountedBelow, places } from "./sandbox-places.ts";

const CHROMIUM = "/usr/bin/chromium";
const reason = existsSync(CHROMIUM) ? "" : ` (skipped: there is no ${CHROMIUM})`;

const PAGE = `<!doctype html><title>Page</title><h1>Head</h1><input id="field">
<a id="link" href="#there" onclick="document.title = 'Clicked'">link</a>
<a id="file" href="data:text/plain,content" download>file</a><p style="margin-top: 3000px">end</p>`;

test.skipIf(reason !== "")(`every browser tool works in the sandbox, and no hidden file shows${reason}`, async () => {
  const { surroundings } = await places("root");
  const { client, pid, end } = await startMcp(["--browser", "project"], surroundings);
  const said = async (name: string, args: Readonly<Record<string, unknown>>) => {
    const answer = await call(client, name, args);
    expect({ name, ...answer }).toMatchObject({ isError: false });
    return answer.text;
  };
  const { tools } = await client.listTools();
  const called = new Set<string>();
  const browser = async (name: string, args: Readonly<Record<string, unknown>>) => {
    called.add(`browser_${name}`);
    return await said(`browser_${name}`, args);
  };
  await said("write_file", { path: "output/page.html", content: PAGE });
  expect(await browser("navigate", { url: "file:///workspace/output/page.html" })).toContain(
    "[Page — file:///workspace/",
  );
  expect(await browser("text", {})).toContain("Head");
  expect(await browser("text", { format: "markdown" })).toContain("# Head");
  await browser("fill", { selector: "#field", text: "typed" });
  await browser("press", { key: "x", selector: "#field" });
  expect(await browser("evaluate", { expression: "document.querySelector('#field').value" })).toMatch(
    /"(?:typedx|xtyped)"/,
  );
  expect(await browser("click", { selector: "#link" })).toContain("[Clicked — ");
  await browser("scroll", { y: 500 });
  await browser("wait", { selector: "#file" });
  expect(await browser("tabs", { op: "list" })).toContain("* 0: Clicked file:///workspace/output/page.html#there");
  await browser("download", { selector: "#file", path: "output/file.txt" });
  expect(await said("read_file", { path: "output/file.txt" })).toBe("content");
  called.add("browser_screenshot");
  const picture = await call(client, "browser_screenshot", { path: "output/page.png" });
  expect(picture.more).toMatchObject([
    { type: "image", mimeType: "image/png", data: expect.stringMatching(/^iVBORw0KGgo/) },
  ]);
  expect(await said("list_files", { path: "output" })).toContain("output/page.png");
  expect([...called].toSorted()).toEqual(
    tools
      .map(({ name }) => name)
      .filter((name) => name.startsWith("browser_"))
      .toSorted(),
  );

  for (const url of ["file:///workspace/.env", "file:///workspace/secrets/signing.key"]) {
    expect(await call(client, "browser_navigate", { url })).toMatchObject({ isError: true });
    expect((await call(client, "browser_text", {})).text).not.toContain("made-up");
  }
  const instance = instanceOf(pid)!;
  expect((await end()).code).toBe(0);
  expect(isMountedBelow(instance)).toBe(false);
});
