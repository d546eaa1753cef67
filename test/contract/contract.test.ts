import { Sandbox } from "agentfense";
import { describe, test } from "vitest";
import { setStage, type World } from "../support/scenes.ts";
import { loadCases, needsPrograms } from "./case.ts";
import { runCase } from "./runner.ts";

const WORLDS: readonly World[] = ["embedded", "remote", "mock"];

describe.each(WORLDS)("a sandbox, %s", (world) => {
  const stage = setStage(world);
  for (const [topic, all] of loadCases()) {
    // The mock engine runs nothing but what a test has prepared.
    const cases = all.filter((one) => world !== "mock" || !needsPrograms(one));
    if (cases.length === 0) continue;
    describe(topic, () => {
      for (const one of cases) {
        const reason = one.except?.[world];
        if (reason !== undefined) process.stdout.write(`skipped (${world}): ${one.title}: ${reason}\n`);
        test(one.title, async (context) => {
          if (reason !== undefined) context.skip(`not ${world}: ${reason}`);
          const directory = stage.project(one.files);
          const open = (options: object) => Sandbox.fromLocal(directory, { ...stage.place, ...options });
          await runCase(one, { world, directory, open });
        });
      }
    });
  }
});
