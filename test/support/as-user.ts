import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { identityOf, reasonAgainst } from "./identity.ts";

const repository = join(import.meta.dirname, "../..");

interface NestedTest {
  readonly fullName: string;
  readonly status: "passed" | "failed" | "skipped" | "pending" | "todo" | "disabled";
  readonly failureMessages: readonly string[];
  readonly duration?: number;
}

interface NestedReport {
  readonly testResults: readonly { readonly message?: string; readonly assertionResults: readonly NestedTest[] }[];
}

/**
 * Runs a file of tests in a process of the ordinary user and shows each of its tests as one of ours. A server that gave up
 * root by itself is not the same as one that never had it, so the whole file runs as a new process of that user.
 */
export async function testsAsUser(file: string): Promise<void> {
  const reason = reasonAgainst("user");
  if (reason !== undefined) {
    process.stdout.write(`skipped (as an ordinary user): ${file}: ${reason}\n`);
    test.skip(`${file} as an ordinary user`, () => {});
    return;
  }
  const { report, output } = await runNested(file);
  for (const line of output.split("\n").filter((each) => each.startsWith("skipped (")))
    process.stdout.write(`${line}\n`);
  const tests = report?.testResults.flatMap(({ assertionResults }) => assertionResults) ?? [];
  if (tests.length === 0) {
    test(`${file} as an ordinary user`, () => {
      throw new Error(`no test ran:\n${output}`);
    });
  }
  for (const { fullName, status, failureMessages } of tests) {
    if (status === "passed" || status === "failed") {
      test(fullName, () => {
        if (status === "failed") throw new Error(failureMessages.join("\n"));
      });
    } else test.skip(fullName, () => {});
  }
}

async function runNested(file: string): Promise<{ report: NestedReport | undefined; output: string }> {
  const identity = identityOf("user");
  const home = await mkdtemp(join(tmpdir(), "agentfense-as-user-"));
  chownSync(home, identity.uid, identity.gid);
  try {
    const reportFile = join(home, "report.json");
    const args = [
      "run",
      file,
      "--configLoader=native",
      "--config",
      "test/support/as-user.config.ts",
      "--reporter=json",
      "--outputFile",
      reportFile,
    ];
    const child = spawn(
      join(repository, "node_modules/.bin/node"),
      [join(repository, "node_modules/vitest/vitest.mjs"), ...args],
      {
        ...identity,
        cwd: repository,
        env: {
          PATH: process.env.PATH,
          HOME: home,
          TMPDIR: home,
          AGENTFENSE_ROUNDS: process.env.AGENTFENSE_ROUNDS,
          NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    await once(child, "close");
    const report = await readFile(reportFile, "utf8").then(
      (text) => JSON.parse(text) as NestedReport,
      () => undefined,
    );
    return { report, output };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
