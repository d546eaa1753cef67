import { describeSandboxLayers } from "./sandbox.suite.ts";

describeSandboxLayers("of root");
