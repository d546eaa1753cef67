import { withDocker } from "../../support/docker-isolation.ts";
import { describeBackend } from "./contract.suite.ts";

const skip = {
  "of IPv6 alone are reached, too": "the engine switches IPv6 off in containers without a network",
  "what pip installs for the user can be imported by the next command, and after a stop":
    "the image of these tests has no pip",
  "JavaScript keeps its names, awaits and imports, and its value is the result": "the image of these tests has no node",
  "JavaScript that runs out of time keeps its names, whether it computes or waits":
    "the image of these tests has no node",
  "TypeScript has its types taken away, or is refused by a Node that cannot": "the image of these tests has no node",
  "npm finds its cache again after a stop": "the image of these tests has no npm",
};

withDocker("the contract", (open) => describeBackend("docker", { open, spec: { runtime: "docker" }, skip, many: 40 }));
