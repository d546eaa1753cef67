import { openIsolation } from "@agentfense/server";
import { describeResources } from "./resources.suite.ts";

describeResources("bwrap", { open: () => openIsolation({ runtimes: ["bwrap"] }), spec: { runtime: "bwrap" } });
