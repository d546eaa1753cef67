import type { HostFacts } from "../facts/facts.ts";
import { doubtful, type Finding, fine } from "../finding.ts";

/** Docker is a choice: without an engine everything else works, so this is never worse than a warning. */
export function judgeDocker({ docker }: Pick<HostFacts, "docker">): Finding {
  if (docker.reachable) {
    const { version, runtimes, cgroupDriver, cgroupVersion } = docker;
    const summary = `Docker ${version}, runtimes ${runtimes.join(", ")}, cgroup v${cgroupVersion} by ${cgroupDriver}`;
    return fine("docker", summary, ["docker"]);
  }
  return doubtful("docker", `no Docker engine answers at ${docker.socket} (${docker.error})`, {
    fix: FIXES[docker.error] ?? "only for --runtime docker: check the engine with: docker info",
    concerns: ["docker"],
    blocks: ["docker"],
  });
}

const FIXES: Readonly<Record<string, string>> = {
  "on another machine": "only for --runtime docker: use an engine of this machine, DOCKER_HOST=unix://…",
  ENOENT: "only for --runtime docker: install and start an engine (package docker.io)",
  ECONNREFUSED: "only for --runtime docker: start the engine with: sudo systemctl start docker",
  EACCES:
    "only for --runtime docker: let this user use the engine with: sudo usermod -aG docker $USER (it makes them root)",
};
