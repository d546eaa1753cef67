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
    // Mounts and their clients each want a CPU; more files at once only make the timings noisy.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ["default"],
  },
});
