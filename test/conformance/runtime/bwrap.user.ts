import { openIsolation } from "@agentfense/server/isolation";
import { describeBackend } from "./contract.suite.ts";

// Run by bwrap-user.test.ts in a process of the ordinary user.
describeBackend("bwrap as an ordinary user", {
  open: () => openIsolation({ runtimes: ["bwrap"] }),
  spec: { runtime: "bwrap" },
});
