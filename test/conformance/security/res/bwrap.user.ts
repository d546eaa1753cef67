import { openIsolation } from "@agentfense/server/isolation";
import { describeResources } from "./resources.suite.ts";

// Run by bwrap-user.test.ts in a process of the ordinary user.
describeResources("bwrap as an ordinary user", {
  open: () => openIsolation({ runtimes: ["bwrap"] }),
  spec: { runtime: "bwrap" },
});
