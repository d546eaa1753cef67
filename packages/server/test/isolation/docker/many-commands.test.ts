import { expect, test } from "vitest";
import { describeDocker, finish } from "./arena.ts";

const COMMANDS = 120;
const AT_A_TIME = 8;

describeDocker("many short commands", (arena) => {
  test("return all of their few bytes and their exit codes, several at a time", async () => {
    const box = await arena.box();
    const results: Record<number, object> = {};
    const expected: Record<number, object> = {};
    let next = 0;
    const work = async () => {
      for (let i = next++; i < COMMANDS; i = next++) {
        const script = `echo out ${i}; echo err ${i} >&2; exit ${i}`;
        const stdin = i % 3 === 0;
        const run = await box.run({ argv: ["/bin/sh", "-c", script], env: {}, workdir: "/", stdin });
        run.stdin?.end("never read\n");
        results[i] = await finish(run);
        expected[i] = { exitCode: i, outOfMemory: false, stdout: `out ${i}\n`, stderr: `err ${i}\n` };
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, work));
    expect(results).toEqual(expected);
  });
});
