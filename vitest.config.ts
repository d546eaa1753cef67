import { defineConfig } from "vitest/config";

export default defineConfig({
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
