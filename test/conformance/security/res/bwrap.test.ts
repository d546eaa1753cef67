import { openIsolation } from "@agentfense/server/isolation";
import { describeResources } from "./resources.suite.ts";

describeResources("bwrap", { open: () => openIsolation({ runtimes: ["bwrap"] }), spec: { runtime: "bwrap" } });
