import { readFileSync } from "node:fs";
import { withDocker } from "../../../support/docker-isolation.ts";
import { describeResources } from "./resources.suite.ts";

const CAP_SYS_RESOURCE = 1n << 24n;

/** Only with this right an engine can give what it starts a lower bound. */
function whyOomScoreIsFree(): string | undefined {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? "0";
  return (BigInt(`0x${effective}`) & CAP_SYS_RESOURCE) === 0n ? "the engine has no CAP_SYS_RESOURCE" : undefined;
}

withDocker("resource attacks", (open) =>
  describeResources("docker", { open, spec: { runtime: "docker" }, whyOomScoreIsFree: whyOomScoreIsFree() }),
);
