import { request } from "node:http";
import { json } from "node:stream/consumers";
import type { DockerFacts } from "./facts.ts";

const PATIENCE_MS = 3_000;

/** Asks this user's engine who it is: the one DOCKER_HOST names, else the usual one. */
export async function readDocker(environment: NodeJS.ProcessEnv): Promise<DockerFacts> {
  const host = environment.DOCKER_HOST || "unix:///var/run/docker.sock";
  const [, socket] = /^unix:\/\/(.+)$/.exec(host) ?? [];
  // Workspaces are mounts of this machine; an engine elsewhere does not see them.
  if (socket === undefined) return { reachable: false, socket: host, error: "on another machine" };
  try {
    const version = (await ask(socket, "/version")) as { Version?: string };
    const info = (await ask(socket, "/info")) as {
      Runtimes?: Record<string, unknown>;
      CgroupDriver?: string;
      CgroupVersion?: string;
    };
    return {
      reachable: true,
      socket,
      version: version.Version ?? "of an unknown version",
      runtimes: Object.keys(info.Runtimes ?? {}).sort(),
      cgroupDriver: info.CgroupDriver ?? "unknown",
      cgroupVersion: info.CgroupVersion ?? "1",
    };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { reachable: false, socket, error: code ?? message };
  }
}

async function ask(socketPath: string, path: string): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const asked = request({ socketPath, path, signal: AbortSignal.timeout(PATIENCE_MS) }, (response) => {
    if (response.statusCode === 200) json(response).then(resolve, reject);
    else reject(new Error(`it answers ${response.statusCode} to ${path}`));
  });
  asked.on("error", reject);
  asked.end();
  return await promise;
}
