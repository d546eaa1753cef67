import { defineConfig } from "vitest/config";

/** For `testsAsUser`: files that are not tests of ours by name, run by a user who can write nothing in the repository. */
export default defineConfig({
  cacheDir: `${process.env.TMPDIR}/vite`,
  test: {
    include: ["test/**/*.user.ts"],
    pool: "forks",
    experimental: { viteModuleRunner: false, nodeLoader: false },
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
