import { withDocker } from "../../support/docker-isolation.ts";
import { describeBackend } from "./contract.suite.ts";

const ENDS = "in a container the processes of a command end with it, unless it runs in a session";
const skip = {
  "of IPv6 alone are reached, too": "the engine switches IPv6 off in containers without a network",
  "a background process lives on, and the next command can see and end it": ENDS,
  "a server that one command starts answers the next, and a session": ENDS,
  "what pip installs for the user can be imported by the next command, and after a stop":
    "the image of these tests has no pip",
  "npm finds its cache again after a stop": "the image of these tests has no npm",
  "a time limit ends the daemons of its own command, and not those of the one before": ENDS,
};

withDocker("the contract", (open) => describeBackend("docker", { open, spec: { runtime: "docker" }, skip }));
