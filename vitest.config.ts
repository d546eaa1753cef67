import { join } from "node:path";
import { defineConfig, type Plugin } from "vitest/config";
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

export default defineConfig({
  plugins: [frameworks],
  test: {
    include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
    // A process per file: a test that mounts must not share its thread, its descriptors or its working directory.
    pool: "forks",
    // A file waits for half of its time; with more of them at once than keep two CPUs busy, timings only become noisy.
    maxWorkers: 4,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ["default"],
  },
});
