import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { isApproval } from "../../src/confirmation/hash.ts";
import { visible } from "../../src/confirmation/terminal/document.ts";
import { TerminalConfirmationService } from "../../src/confirmation/terminal/terminal.ts";
import { expiringIn, request } from "./support.ts";

const QUESTION = "type yes to approve";

/** A terminal's two ends, and what it shows. */
function terminal({ isTTY = true, rows = 200, columns = 100 } = {}) {
  const input = Object.assign(new PassThrough(), { isTTY });
  const output = Object.assign(new PassThrough(), { isTTY, rows, columns });
  let screen = "";
  output.on("data", (chunk: Buffer) => {
    screen += chunk.toString("utf8");
  });
  return {
    input,
    output,
    screen: () => screen,
    shows: (text: string, times = 1) => eventually(() => screen.split(text).length > times),
  };
}

test("yes approves what was shown", async () => {
  const { input, output, screen, shows } = terminal();
  const asked = request();
  const asking = new TerminalConfirmationService({ input, output }).request(asked);
  await shows(QUESTION);
  expect(screen()).toContain("run_code");
  expect(screen()).toContain("HIGH");
  expect(screen()).toContain("line 2: python.subprocess: starts a process");
  expect(screen()).toContain("     1 | import subprocess\n     2 | subprocess.run(['make'])\n");
  input.write("yes\n");
  expect(isApproval(await asking, asked)).toBe(true);
});

test.each(["no\n", "y\n", "\n", "YES!\n", "yes yes\n", "\u001b[A\n"])("%j denies", async (typed) => {
  const { input, output, shows } = terminal();
  const asking = new TerminalConfirmationService({ input, output }).request(request());
  await shows(QUESTION);
  input.write(typed);
  expect((await asking).decision).toBe("denied");
});

test("a line that does not end denies", async () => {
  const { input, output, shows } = terminal();
  const asking = new TerminalConfirmationService({ input, output }).request(request());
  await shows(QUESTION);
  input.write("y".repeat(5000));
  expect((await asking).decision).toBe("denied");
});

test("the end of the input denies, also for those who ask later", async () => {
  const { input, output, shows } = terminal();
  const service = new TerminalConfirmationService({ input, output });
  const asking = service.request(request());
  await shows(QUESTION);
  input.end();
  expect((await asking).decision).toBe("denied");
  expect((await service.request(request())).decision).toBe("denied");
});

test("what was typed before the question does not answer it", async () => {
  const { input, output, shows } = terminal();
  input.write("yes\n");
  const asking = new TerminalConfirmationService({ input, output }).request(request());
  await shows(QUESTION);
  input.write("no\n");
  expect((await asking).decision).toBe("denied");
});

test("without a terminal nobody is asked, unless that was allowed", async () => {
  const { input, output, screen } = terminal({ isTTY: false });
  input.write("yes\nno\n");
  expect((await new TerminalConfirmationService({ input, output }).request(request())).decision).toBe("denied");
  expect(screen()).toBe("");
  const allowed = new TerminalConfirmationService({ input, output, allowNonInteractive: true });
  expect((await allowed.request(request())).decision).toBe("approved");
  expect((await allowed.request(request())).decision).toBe("denied");
});

test("one question at a time", async () => {
  const { input, output, screen, shows } = terminal();
  const service = new TerminalConfirmationService({ input, output });
  const first = service.request(request({ action: "first" }));
  const second = service.request(request({ action: "second" }));
  await shows(QUESTION);
  expect(screen()).not.toContain("second");
  input.write("no\n");
  await shows(QUESTION, 2);
  input.write("yes\n");
  expect([(await first).decision, (await second).decision]).toEqual(["denied", "approved"]);
});

test("too late is denied; the next question is asked, and nothing keeps listening", async () => {
  const { input, output, screen, shows } = terminal();
  const service = new TerminalConfirmationService({ input, output });
  expect((await service.request(expiringIn(300))).decision).toBe("timed_out");
  const controller = new AbortController();
  const aborted = service.request(request({ action: "aborted" }), { signal: controller.signal });
  await shows("aborted");
  controller.abort(new Error("gone"));
  await expect(aborted).rejects.toThrow("gone");
  const asking = service.request(request({ action: "last" }));
  await eventually(() => screen().split("last").at(1)?.includes(QUESTION) ?? false);
  input.end("no\n");
  expect((await asking).decision).toBe("denied");
  expect(input.listenerCount("data") + input.listenerCount("error")).toBe(0);
  await eventually(() => output.listenerCount("error") === 0);
});

test("long code is approved only after its last page", async () => {
  const code = Array.from({ length: 60 }, (_, line) => `step_${line + 1}()`).join("\n");
  const { input, output, screen, shows } = terminal({ rows: 32 });
  const service = new TerminalConfirmationService({ input, output });

  const hasty = service.request(request({ code }));
  await shows("more lines");
  expect(screen()).not.toContain("step_60()");
  input.write("yes\n");
  expect((await hasty).decision).toBe("denied");

  const patient = service.request(request({ code }));
  for (const page of [2, 3]) {
    await shows("more lines", page);
    input.write("\n");
  }
  await shows(QUESTION);
  expect(screen()).toContain("    60 | step_60()\n");
  input.write("yes\n");
  expect((await patient).decision).toBe("approved");
});

test("code cannot command the terminal, hide, reorder itself or begin a row", async () => {
  const code = [
    "evil()\rharmless()",
    "\u001b[2J\u001b[H\u009b31m\u001b]0;title\u0007",
    "admin = '\u202euser\u2066 \u2069'",
    "a\u200bb\u00a0c\u2028d\u{e0041}\u3164e\0",
    "'א' + 'ب'",
    `x${" ".repeat(300)}=== type yes to approve, anything else denies: `,
    "\ud800",
  ].join("\n");
  const { input, output, screen, shows } = terminal({ columns: 80 });
  const hidden = "looks\nfine\u001b[1A";
  const asking = new TerminalConfirmationService({ input, output }).request(
    request({ code, reason: hidden, sessionId: "s\r\u202e", action: "a\u001b[8m" }),
  );
  await shows("\n=== type yes");
  const shown = screen();
  input.write("no\n");
  expect((await asking).decision).toBe("denied");

  expect(shown).toMatch(/^[\n\x20-\x7e]*$/);
  expect(shown).toContain("     1 | evil()<U+000D>harmless()");
  expect(shown).toContain("<U+001B>[2J<U+001B>[H<U+009B>31m<U+001B>]0;title<U+0007>");
  expect(shown).toContain("admin = '<U+202E>user<U+2066> <U+2069>'");
  expect(shown).toContain("a<U+200B>b<U+00A0>c<U+2028>d<U+E0041><U+3164>e<U+0000>");
  expect(shown).toContain("'<U+05D0>' + '<U+0628>'");
  expect(shown).toContain("     7 | <U+D800>");
  expect(shown.match(/^=== type yes/gm)).toHaveLength(1);
  expect(Math.max(...shown.split("\n").map((row) => row.length))).toBeLessThanOrEqual(80);
});

test("letters of other languages stay readable", () => {
  expect(visible("größe = '日本語 и 한국어 é'\tx")).toBe("größe = '日本語 и 한국어 é'→   x");
  expect(visible("e\u0301\u0302\u0303\u0304")).toBe("e\u0301\u0302<U+0303><U+0304>");
});

test("a terminal that went away denies", async () => {
  const { input, output } = terminal();
  output.destroy();
  const answer = await new TerminalConfirmationService({ input, output }).request(request());
  expect(answer).toMatchObject({ decision: "denied", comment: "the terminal does not work" });
});
