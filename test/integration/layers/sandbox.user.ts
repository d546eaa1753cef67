import { describeSandboxLayers } from "./sandbox.suite.ts";

// Run by sandbox-user.test.ts in a process of the ordinary user.
describeSandboxLayers("of an ordinary user");
