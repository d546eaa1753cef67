import { createInterface } from "node:readline";
import { cancelled, IsolationError, invalid } from "../backend/isolation-error.ts";
import { type DockerDaemon, isStatus } from "./daemon.ts";
import { checkImageName } from "./image-name.ts";

/** What we need to know of an image. */
export interface Image {
  /** Its digest: what the name means now, whatever it will mean later. */
  readonly id: string;
  readonly volumes: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface ImagePolicy {
  /** Whether an absent image may be fetched from a registry. */
  readonly allowPull: boolean;
  /** Names a sandbox may ask for, to the letter; absent: any image the daemon has. */
  readonly allowedImages: readonly string[] | undefined;
}

interface Progress {
  readonly signal: AbortSignal | undefined;
  readonly onProgress: (line: string) => void;
}

/** The image behind a name, pulled if it is absent and that is allowed. */
export async function findImage(
  daemon: DockerDaemon,
  name: string,
  policy: ImagePolicy,
  progress: Progress,
): Promise<Image> {
  checkImageName(name);
  if (policy.allowedImages !== undefined && !policy.allowedImages.includes(name)) {
    const allowed = policy.allowedImages.join(", ") || "none";
    throw invalid(`the image ${name} is not allowed here`, `allowed are: ${allowed}`);
  }
  const present = await inspectImage(daemon, name, progress.signal);
  if (present !== undefined) return present;
  if (!policy.allowPull) {
    throw new IsolationError("IMAGE_NOT_FOUND", `the engine has no image ${name}, and pulling is not allowed here`, {
      hint: `docker pull ${name}`,
    });
  }
  await pullImage(daemon, name, progress);
  const pulled = await inspectImage(daemon, name, progress.signal);
  if (pulled === undefined) throw notPulled(name, new Error("the engine still does not have it"));
  return pulled;
}

async function inspectImage(
  daemon: DockerDaemon,
  name: string,
  signal: AbortSignal | undefined,
): Promise<Image | undefined> {
  try {
    const { Id, Config } = await daemon.get<{
      Id: string;
      Config: { Volumes?: Record<string, unknown> | null; Env?: readonly string[] | null } | null;
    }>(`/images/${encodeURIComponent(name)}/json`, { signal });
    return {
      id: Id,
      volumes: Object.keys(Config?.Volumes ?? {}),
      env: Object.fromEntries((Config?.Env ?? []).map((variable) => variable.split(/=(.*)/s, 2))),
    };
  } catch (error) {
    if (isStatus(error, 404)) return undefined;
    throw error;
  }
}

async function pullImage(daemon: DockerDaemon, name: string, progress: Progress): Promise<void> {
  progress.onProgress(`pulling ${name}`);
  // Without a tag the daemon would fetch every tag there is.
  const query = /[:@][^/]*$/.test(name) ? { fromImage: name } : { fromImage: name, tag: "latest" };
  try {
    const answer = await daemon.stream("POST", "/images/create", { query, signal: progress.signal });
    let last = "";
    for await (const line of createInterface({ input: answer })) {
      const { status, id, error } = JSON.parse(line) as Readonly<Record<string, string | undefined>>;
      if (error !== undefined) throw new Error(error);
      const text = id === undefined ? (status ?? "") : `${id}: ${status ?? ""}`;
      if (text !== "" && text !== last) progress.onProgress(text);
      last = text;
    }
  } catch (error) {
    if (progress.signal?.aborted) throw cancelled(error);
    throw notPulled(name, error);
  }
}

function notPulled(name: string, cause: unknown): IsolationError {
  return new IsolationError("IMAGE_NOT_FOUND", `the image ${name} could not be pulled`, {
    hint: `docker pull ${name}`,
    cause,
  });
}
