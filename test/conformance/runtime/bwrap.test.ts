import { openIsolation } from "@agentfense/server/isolation";
import { describeBackend } from "./contract.suite.ts";

describeBackend("bwrap as root", {
  open: () => openIsolation({ runtimes: ["bwrap"] }),
  spec: { runtime: "bwrap" },
});
