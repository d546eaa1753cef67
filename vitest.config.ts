import { join } from "node:path";
import { configDefaults, defineConfig, type Plugin } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
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
  "test/{compatibility,conventions,docs,types}/**/*.test.ts",
  "test/conformance/security/api/**/*.test.ts",
];

/** The only ones that need Vite: it finds the frameworks for the adapters, and replaces one version by another. */
const ADAPTERS = ["test/adapters/**/*.test.ts"];

/** Those that take longest, longest first: begun early, none of them runs on by itself when all the others are done. */
const LONGEST = [
  "test/docs/run.test.ts",
  "packages/agentfense/test/run.test.ts",
  "test/packaging/packaging.test.ts",
  "packages/server/test/bwrap/box.test.ts",
  "test/conformance/runtime/docker.test.ts",
  "test/conformance/security/res/docker.test.ts",
  "test/contract/contract.test.ts",
  "test/integration/embedded/as-user.test.ts",
  "test/samples/concepts.test.ts",
  "test/integration/sdk/robustness.test.ts",
  "test/conformance/security/disc/lookup.test.ts",
  "packages/server/test/session/endings.test.ts",
  "packages/server/test/sandboxes/sync.test.ts",
  "test/conformance/security/design/layers.test.ts",
  "test/conformance/security/res/bwrap.test.ts",
  "test/integration/programs.test.ts",
  "packages/agent/test/executors/docker.test.ts",
  "packages/server/test/session/forgery.test.ts",
  "test/conformance/security/esc/kernel.test.ts",
  "test/integration/service/restart.test.ts",
  "test/integration/layers/turns.test.ts",
  "packages/server/test/session/model.test.ts",
  "test/conformance/security/esc/processes.test.ts",
  "test/conformance/security/sync/authority.test.ts",
  "test/conformance/security/api/docker.test.ts",
  "packages/agentfense/test/mcp.test.ts",
  "packages/agentfense/test/apply.test.ts",
].map((path) => join(import.meta.dirname, path));

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = LONGEST.indexOf(moduleId);
      return place === -1 ? LONGEST.length : place;
    };
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: "together", include: TOGETHER, isolate: false } },
      {
        // A process per file: a test that mounts must not share its thread, its descriptors or its working directory.
        extends: true,
        test: {
          name: "apart",
          globalSetup: "test/support/docker-setup.ts",
          include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [...configDefaults.exclude, ...TOGETHER, ...ADAPTERS],
        },
      },
      {
        extends: true,
        plugins: [frameworks],
        test: { name: "adapters", include: ADAPTERS, experimental: { viteModuleRunner: true } },
      },
    ],
    // Node runs our TypeScript as it is, and keeps what it compiled: Vite would translate it again for each process.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: LongestFirst },
    pool: "forks",
    // A file waits for half of its time; with more of them at once than keep two CPUs busy, timings only become noisy.
    maxWorkers: 4,
    // These end hangs; nothing that works takes as long, also on a machine with much else to do. No test has one of its own.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 600_000,
    reporters: ["default"],
  },
});
