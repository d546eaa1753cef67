import { join } from "node:path";
import { configDefaults, defineConfig, type Plugin } from "vitest/config";
import sdk from "./packages/sdk/package.json" with { type: "json" };

const FRAMEWORKS = Object.keys(sdk.peerDependencies);

/** The adapters import frameworks that are installed for their tests only, beside them. */
const frameworks: Plugin = {
  name: "frameworks",
  enforce: "pre",
  resolveId(source) {
    const isFramework = FRAMEWORKS.some((name) => source === name || source.startsWith(`${name}/`));
    if (!isFramework) return undefined;
    return this.resolve(source, join(import.meta.dirname, "test/adapters/anything.ts"), { skipSelf: true });
  },
};

/**
 * These mount nothing and count nothing in their own process: what they test is pure, or in other processes. They share
 * processes, and load each module once.
 */
const TOGETHER = [
  "packages/{permission,sdk,agentfense}/test/**/*.test.ts",
  "packages/agent/test/{confirmation,manager,mcp,risk,tools,world}/**/*.test.ts",
  "packages/server/test/{configuration,http,rest,rpc,store}/**/*.test.ts",
  "test/{compatibility,docs,types}/**/*.test.ts",
  "test/conformance/security/api/**/*.test.ts",
];

export default defineConfig({
  plugins: [frameworks],
  test: {
    projects: [
      { extends: true, test: { name: "together", include: TOGETHER, isolate: false } },
      {
        // A process per file: a test that mounts must not share its thread, its descriptors or its working directory.
        extends: true,
        test: {
          name: "apart",
          include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [...configDefaults.exclude, ...TOGETHER],
        },
      },
    ],
    pool: "forks",
    // A file waits for half of its time; with more of them at once than keep two CPUs busy, timings only become noisy.
    maxWorkers: 4,
    // These end hangs; nothing that works takes as long, also on a machine with much else to do. No test has one of its own.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    reporters: ["default"],
  },
});
