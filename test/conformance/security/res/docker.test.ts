import { withDocker } from "../../../support/docker-isolation.ts";
import { describeResources } from "./resources.suite.ts";

withDocker("resource attacks", (open) => describeResources("docker", { open, spec: { runtime: "docker" } }));
