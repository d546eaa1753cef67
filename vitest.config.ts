import { join } from "node:path";
import { configDefaults, defineConfig, type Plugin } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import sdk from "./packages/sdk/package.json" with { type: "json" };
import { filesInMemory } from "./test/support/memory.ts";

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
  "packages/{permission,protocol,sdk,agentfense}/test/**/*.test.ts",
  "packages/agent/test/{confirmation,manager,mcp,risk,tools,world}/**/*.test.ts",
  "packages/server/test/{isolation/seccomp,runtime/audit,runtime/keys,runtime/store,service}/**/*.test.ts",
  "test/{compatibility,conventions,docs,e2e,python,requirements,types}/**/*.test.ts",
  "test/conformance/{posix,service}/**/*.test.ts",
  "test/conformance/sync/{crash,last-writer,random}.test.ts",
  "test/conformance/security/api/**/*.test.ts",
  "test/integration/service/**/*.test.ts",
];

/**
 * These make and compare the most files, and are not about the file system below ours: `posix` and `model` are, on a disk. They
 * share processes too, each with one mount host, one thread for jobs and one daemon per user for all of its files.
 */
const IN_MEMORY = [
  "packages/fuse/test/**/*.test.ts",
  "packages/server/test/{isolation/changes,isolation/view,runtime/codebases,runtime/sandboxes}/**/*.test.ts",
  "test/conformance/security/{design,disc,ro,view}/**/*.test.ts",
  "test/integration/layers/**/*.test.ts",
];

/** The only ones that need Vite: it finds the frameworks for the adapters, and replaces one version by another. */
const ADAPTERS = ["test/adapters/**/*.test.ts"];

/** Those that take longest, longest first: begun early, none of them runs on by itself when all the others are done. */
const LONGEST = [
  "test/conformance/runtime/docker.test.ts",
  "test/docs/run.test.ts",
  "packages/agentfense/test/run.test.ts",
  "test/packaging/packaging.test.ts",
  "test/contract/contract.test.ts",
  "test/conformance/security/res/docker.test.ts",
  "test/integration/layers/turns.test.ts",
  "test/integration/sdk/robustness.test.ts",
  "test/integration/embedded/as-user.test.ts",
  "test/samples/concepts.test.ts",
  "test/conformance/runtime/bwrap.test.ts",
  "test/conformance/security/design/layers.test.ts",
  "packages/agentfense/test/mcp.test.ts",
  "packages/server/test/isolation/session/endings.test.ts",
  "test/conformance/security/res/bwrap.test.ts",
  "test/integration/service/restart.test.ts",
  "packages/server/test/isolation/session/model.test.ts",
  "packages/agentfense/test/home.test.ts",
  "packages/server/test/isolation/session/forgery.test.ts",
  "packages/agentfense/test/apply.test.ts",
  "test/integration/programs.test.ts",
  "packages/server/test/runtime/sandboxes/sync.test.ts",
  "packages/agent/test/executors/docker.test.ts",
  "test/conformance/sync/authority.test.ts",
  "test/conformance/security/disc/lookup.test.ts",
  "test/conformance/security/esc/processes.test.ts",
  "test/conformance/security/disc/listing.test.ts",
  "packages/agentfense/test/toolchains.test.ts",
  "packages/server/test/isolation/docker/killing.test.ts",
  "test/conformance/security/api/docker.test.ts",
  "packages/agent/test/browser/inside.test.ts",
  "test/samples/security.test.ts",
  "packages/agentfense/test/remote/answers.test.ts",
  "test/conformance/security/esc/files.test.ts",
  "packages/agent/test/browser/external.test.ts",
  "packages/server/test/isolation/bwrap/box.test.ts",
].map((path) => join(import.meta.dirname, path));

/** Whose files share processes. */
const SHARING = ["in memory", "together"];

/** The longest first, then all that share processes one after the other: Vitest keeps a shared one only for the very next file. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      const place = LONGEST.indexOf(moduleId);
      return place !== -1 ? place : LONGEST.length + 1 + SHARING.indexOf(project.name);
    };
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "together",
          globalSetup: "test/support/postgres-setup.ts",
          include: TOGETHER,
          isolate: false,
        },
      },
      {
        // A process per file: a test that mounts must not share its thread, its descriptors or its working directory.
        extends: true,
        test: {
          name: "apart",
          globalSetup: "test/support/docker-setup.ts",
          include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [...configDefaults.exclude, ...TOGETHER, ...IN_MEMORY, ...ADAPTERS],
        },
      },
      { extends: true, test: { name: "in memory", include: IN_MEMORY, isolate: false, env: { ...filesInMemory() } } },
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
    // A file waits for most of its time: with six of them two CPUs always have something to do.
    maxWorkers: 6,
    // These end hangs; nothing that works takes as long, also on a machine with much else to do. No test has one of its own.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 600_000,
    reporters: ["default"],
  },
});
