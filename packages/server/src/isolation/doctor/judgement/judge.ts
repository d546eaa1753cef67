import type { HostFacts } from "../facts/facts.ts";
import type { Finding } from "../finding.ts";
import {
  judgeApparmor,
  judgeBwrap,
  judgeLimits,
  judgeNamespaceMaximum,
  judgeNamespaces,
  judgeNetworkHelper,
  judgePerl,
  judgeSetpriv,
} from "./bwrap.ts";
import { judgeDocker } from "./docker.ts";
import { judgeFuseDevice, judgeFusermount, judgeKernel, judgeNode, judgePassthrough, judgeSeccomp } from "./host.ts";

/** The verdicts on a host, in the order in which they are read best: what everything needs first. */
export function judgeHost(facts: HostFacts): readonly Finding[] {
  return JUDGEMENTS.map((judge) => judge(facts));
}

const JUDGEMENTS: readonly ((facts: HostFacts) => Finding)[] = [
  judgeNode,
  judgeKernel,
  judgeFuseDevice,
  judgeFusermount,
  judgePassthrough,
  judgeBwrap,
  judgeNamespaces,
  judgeNamespaceMaximum,
  judgeApparmor,
  judgeSeccomp,
  judgeLimits,
  judgePerl,
  judgeSetpriv,
  judgeNetworkHelper,
  judgeDocker,
];
