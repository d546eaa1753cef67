import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { scriptText } from "../../../src/isolation/bwrap/scripts.ts";

// The scripts themselves load no module, not even these: each box would pay for it.
test.each(["launcher", "keeper"] as const)("the %s is correct perl under strict and warnings", (name) => {
  const { stderr } = spawnSync("perl", ["-c", "-Mstrict", "-Mwarnings=FATAL,all", "-"], {
    input: scriptText(name),
    encoding: "utf8",
  });
  expect(stderr).toBe("- syntax OK\n");
});

test.each(["launcher", "keeper"] as const)("the %s uses no module", (name) => {
  expect(scriptText(name)).not.toMatch(/^\s*(use|require)\s/m);
});
