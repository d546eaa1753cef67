import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";

test("at a real terminal: what was typed before the question does not count, what is typed then does", async () => {
  const program = `${process.execPath} ${join(import.meta.dirname, "ask-at-terminal.ts")}`;
  // script(1) makes a terminal, and types there what it reads.
  const child = spawn("script", ["-qec", program, "/dev/null"], { stdio: ["pipe", "pipe", "inherit"] });
  let screen = "";
  child.stdout.on("data", (chunk: Buffer) => {
    screen += chunk.toString("utf8");
  });
  try {
    child.stdin.write("yes\n");
    const questions = (): number => screen.split("=== type yes").length - 1;
    await eventually(() => questions() === 1);
    expect(screen).not.toContain("decided");
    expect(screen).toContain("     1 | echo <U+001B>[2J<U+202E>");
    child.stdin.write("no\n");
    await eventually(() => questions() === 2);
    child.stdin.write("yes\n");
    // It ends by itself: nothing keeps reading.
    const [code] = await once(child, "close");
    expect(code).toBe(0);
    expect(screen.match(/decided: \w+/g)).toEqual(["decided: denied", "decided: approved"]);
  } finally {
    child.kill("SIGKILL");
  }
});
