import { withDocker } from "../../support/docker-isolation.ts";
import { describeBackend } from "./contract.suite.ts";

withDocker("the contract", (open) => describeBackend("docker", { open, spec: { runtime: "docker" } }));
