import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { agentfense } from "./run-cli.ts";
import { describeForBoth, places } from "./sandbox-places.ts";

const WORK = [
  "set -e",
  "cat package.json src/*.js > /dev/null",
  "cat .env",
  "ls docs > /dev/null",
  "mkdir -p dist/js && cat src/tracker.js > dist/js/tracker.js && touch dist/index.html",
  "echo done >> README.md",
  "touch work.48213 && mv work.48213 result.txt",
].join("\n");

interface Learned {
  readonly rules: readonly { pattern: string; permission: string; priority?: number; reason: string }[];
  readonly secrets: readonly { path: string; level: string }[];
}

describeForBoth("agentfense policy learn", (as) => {
  test("proposes the least rules for a command, under which it then works and no more is seen than it used", async () => {
    const { cwd, surroundings } = await places(as);
    const before = await readFile(join(cwd, "project/README.md"), "utf8");
    const learned = await agentfense(
      ["policy", "learn", "--json", "--record", "audit", "project", "--", WORK],
      surroundings,
    );
    expect(learned).toMatchObject({ code: 0, stderr: await readFile(join(cwd, "project/.env"), "utf8") });
    const { rules, secrets } = JSON.parse(learned.stdout) as Learned;
    expect(secrets).toMatchObject([{ path: "/.env", level: "read" }]);
    const byPattern = Object.fromEntries(rules.map(({ pattern, permission }) => [pattern, permission]));
    expect(byPattern).toMatchObject({
      "/dist/**": "write",
      "/README.md": "write",
      "/work.*": "write",
      "/result.txt": "write",
      "/package.json": "read",
      "/src/events.js": "read",
      "/src/tracker.js": "read",
      "/docs": "view",
    });
    expect(Object.keys(byPattern).filter((pattern) => /env|secret|carriers/.test(pattern))).toEqual([]);
    expect(rules.every(({ reason }) => reason !== "")).toBe(true);
    expect(await readFile(join(cwd, "project/README.md"), "utf8")).toBe(before);

    const text = await agentfense(["policy", "learn", "project", "--", WORK], surroundings);
    expect(text.stdout).toContain("# Not allowed: /.env (read); looks like a secret.");
    await writeFile(join(cwd, "rules.yaml"), text.stdout);
    const simulated = await agentfense(["policy", "simulate", "rules.yaml", "--against", "audit"], surroundings);
    expect(simulated.code).toBe(1);
    expect(simulated.stdout).toMatch(
      /^refused {2}\/\.env {2}needs read, has none \(no rule matches\)\n1 of \d+ paths refused\n$/,
    );
    const used = WORK.replace("cat .env\n", "");
    const again = await agentfense(["run", "--rules", "rules.yaml", "project", "--", `${used}\nls -A`], surroundings);
    expect(again.code).toBe(0);
    expect(again.stdout).not.toMatch(/^(config|secrets|\.env)$/m);
  });

  test("a command that fails says so with its own code, and nothing is applied or kept", async () => {
    const { surroundings } = await places(as);
    const { code, stderr } = await agentfense(["policy", "learn", "project", "--", "exit 3"], surroundings);
    expect({ code, stderr }).toMatchObject({ code: 3, stderr: expect.stringContaining("the command ended with 3") });
    for (const option of ["--preset=full-access", "--delta=kept", "--apply"]) {
      expect((await agentfense(["policy", "learn", option, "project", "--", "true"], surroundings)).code).toBe(2);
    }
  });
});
