import { withDocker } from "../../support/docker-isolation.ts";
import { describeBackend } from "./contract.suite.ts";

const skip = {
  "of IPv6 alone are reached, too": "the engine switches IPv6 off in containers without a network",
  "what pip installs for the user can be imported by the next command, and after a stop":
    "the image of these tests has no pip",
  "npm finds its cache again after a stop": "the image of these tests has no npm",
};

withDocker("the contract", (open) => describeBackend("docker", { open, spec: { runtime: "docker" }, skip, many: 40 }));
