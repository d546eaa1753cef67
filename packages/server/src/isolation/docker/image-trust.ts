import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { type FileTree, findTrustStores, firstBundle, type TrustStores } from "../network/trust.ts";
import { removeContainer } from "./container.ts";
import { DaemonError, type DockerDaemon } from "./daemon.ts";
import type { Image } from "./image.ts";
import { LABEL } from "./plan.ts";

/** What the programs of an image believe. */
export interface ImageTrust {
  readonly stores: TrustStores;
  /** "" where the image has none. */
  readonly bundle: string;
}

const MOST_IMAGES = 64;
const MOST_FILE_BYTES = 4 * 1024 * 1024;

/** Looks into each image once: what it is cannot change under its digest. */
export class ImageTrusts {
  readonly #daemon: DockerDaemon;
  readonly #instance: string;
  readonly #known = new Map<string, Promise<ImageTrust>>();

  constructor(daemon: DockerDaemon, instance: string) {
    this.#daemon = daemon;
    this.#instance = instance;
  }

  of(image: Image): Promise<ImageTrust> {
    const known = this.#known.get(image.id) ?? this.#look(image);
    this.#known.delete(image.id);
    this.#known.set(image.id, known);
    known.catch(() => this.#known.delete(image.id));
    if (this.#known.size > MOST_IMAGES) this.#known.delete(this.#known.keys().next().value!);
    return known;
  }

  /** In a container that is never started: nothing of the image runs. */
  async #look(image: Image): Promise<ImageTrust> {
    const { Id: id } = await this.#daemon.post<{ Id: string }>("/containers/create", {
      query: { name: `agentfense-${this.#instance}-look-${randomBytes(4).toString("hex")}` },
      body: {
        ...{ Image: image.id, Labels: { [LABEL.instance]: this.#instance }, Entrypoint: ["/bin/false"], Cmd: [] },
        // Otherwise the daemon would copy what the image has in its volumes.
        HostConfig: { NetworkMode: "none", Tmpfs: Object.fromEntries(image.volumes.map((path) => [path, ""])) },
      },
    });
    try {
      const tree = treeOf(this.#daemon, id);
      const stores = await findTrustStores(tree, () => true, namedBy(image.env));
      return { stores, bundle: await firstBundle(tree, stores.bundles) };
    } finally {
      await removeContainer(this.#daemon, id);
    }
  }
}

/** Images that keep theirs elsewhere say so in their variables. */
function namedBy(env: Image["env"]): TrustStores {
  const absolute = (path: string | undefined): string[] => (path?.startsWith("/") ? [path] : []);
  const ofJava = absolute(env.JAVA_HOME).flatMap((home) => [home, `${home}/jre`]);
  return {
    bundles: [...absolute(env.SSL_CERT_FILE), ...absolute(env.NIX_SSL_CERT_FILE)],
    java: ofJava.map((home) => `${home}/lib/security/cacerts`),
  };
}

/** The files of a container, as the daemon tells them. What it cannot tell is not there. */
function treeOf(daemon: DockerDaemon, container: string): FileTree {
  const place = `/containers/${container}/archive`;
  const known = new Map<string, ReturnType<FileTree["entry"]>>();
  const ask = async (method: "HEAD" | "GET", path: string): Promise<IncomingMessage | undefined> => {
    try {
      return await daemon.stream(method, place, { query: { path } });
    } catch (error) {
      if (error instanceof DaemonError) return undefined;
      throw error;
    }
  };
  const look = async (path: string): ReturnType<FileTree["entry"]> => {
    const answer = await ask("HEAD", path);
    answer?.resume();
    return answer && entryOf(String(answer.headers["x-docker-container-path-stat"]));
  };
  return {
    entry: (path) => {
      const entry = known.get(path) ?? look(path);
      known.set(path, entry);
      return entry;
    },
    read: async (path) => {
      const answer = await ask("GET", path);
      return answer === undefined ? "" : await onlyFile(answer);
    },
  };
}

/** Bits of the mode of a file, as Go has it. */
const GO_MODE = { directory: 2 ** 31, link: 2 ** 27, others: 2 ** 26 + 2 ** 25 + 2 ** 24 + 2 ** 21 + 2 ** 19 } as const;

/** The daemon says where a link leads in the end, from the container's root. */
function entryOf(told: string): Awaited<ReturnType<FileTree["entry"]>> {
  const { mode, linkTarget } = JSON.parse(Buffer.from(told, "base64").toString()) as {
    readonly mode: number;
    readonly linkTarget: string;
  };
  const has = (bits: number) => (BigInt(mode) & BigInt(bits)) !== 0n;
  if (has(GO_MODE.link)) return { kind: "link", target: linkTarget };
  if (has(GO_MODE.directory)) return { kind: "directory" };
  return has(GO_MODE.others) ? undefined : { kind: "file" };
}

const BLOCK = 512;

/** The text of the one regular file in an archive; extended headers come before its own. */
async function onlyFile(archive: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of archive) {
    pieces.push(piece as Buffer);
    bytes += (piece as Buffer).length;
    if (bytes > MOST_FILE_BYTES) return ""; // which ends the answer
  }
  const all = Buffer.concat(pieces);
  for (let at = 0; at + BLOCK <= all.length; ) {
    const header = all.subarray(at, at + BLOCK);
    const size = Number.parseInt(header.toString("latin1", 124, 135), 8) || 0;
    at += BLOCK;
    const type = header.toString("latin1", 156, 157);
    if (type === "0" || type === "\0") return all.toString("utf8", at, at + size);
    at += Math.ceil(size / BLOCK) * BLOCK;
  }
  return "";
}
