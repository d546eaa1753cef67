import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "agentfense";
import { expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { AioBrowsers } from "../../src/browser/aio-browsers.ts";
import { PAGES } from "./pages.ts";
import { chromiumProcesses, isAlive } from "./processes.ts";

test("each sandbox has a browser of its own, until nobody needs it", async () => {
  const directory = await mkdtemp(join(tmpdir(), "agentfense-test-"));
  try {
    await writeFile(join(directory, "article.html"), String(PAGES["/article"]));
    await writeFile(join(directory, ".env"), "SECRET=1");
    await using sandbox = await Sandbox.fromLocal(directory);
    await using browsers = new AioBrowsers({ maxBrowsers: 1, viewport: { width: 400, height: 300 } });
    const { signal } = new AbortController();
    const go = (url: string) => browsers.navigate(sandbox, { url, waitUntil: "load", timeoutMs: 30_000, signal });

    expect(await go("file:///workspace/article.html")).toMatchObject({ title: "On boxes!" });
    expect(await browsers.info(sandbox, { signal })).toEqual({
      userAgent: expect.stringContaining("Chrome/"),
      cdpUrl: "",
      viewport: { width: 400, height: 300 },
    });
    const png = Buffer.from(await browsers.screenshot(sandbox, { format: "png", signal }));
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([400, 300]);
    const jpeg = Buffer.from(await browsers.screenshot(sandbox, { format: "jpeg", quality: 50, signal }));
    expect(jpeg.subarray(0, 3).toString("hex")).toBe("ffd8ff");

    await expect(go("file:///workspace/.env")).rejects.toThrow(/ERR_FILE_NOT_FOUND/);
    await expect(go("file:///etc/passwd")).rejects.toMatchObject({ name: "Refusal", status: 403 });
    const other = Object.assign(Object.create(sandbox) as Sandbox, { id: "another" });
    await expect(browsers.info(other, { signal })).rejects.toMatchObject({ status: 429 });

    const running = chromiumProcesses();
    await browsers.close();
    await eventually(() => expect(running.filter(isAlive)).toEqual([]));
    await expect(go("file:///workspace/article.html")).rejects.toMatchObject({ status: 503 });
    expect(sandbox.status).toBe("running");
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
