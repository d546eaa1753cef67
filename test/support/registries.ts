import { execFileSync, spawn } from "node:child_process";
import { chmodSync, createReadStream, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { userInfo } from "node:os";
import { join, normalize } from "node:path";

const SSHD = "/usr/sbin/sshd";
const GIT_HOSTS = ["github.com", "code.test"];

/** Why git cannot be tried over ssh here. */
export function reasonAgainstSsh(): string | undefined {
  return existsSync(SSHD) ? undefined : "openssh-server is not installed";
}

/**
 * Registries that have a package "greeting" each, as sites of a test internet: npm's, PyPI's, crates.io's, Go's, Debian's; and git's, over HTTPS and
 * over ssh. code.test wants to know who it is.
 */
export function makeRegistries(directory: string) {
  execFileSync("/usr/bin/python3", [join(import.meta.dirname, "registries.py"), directory], { stdio: "pipe" });
  const file = (host: string, url: string): string | undefined => {
    const path = join(directory, host, normalize(decodeURIComponent(url.split("?")[0]!)));
    const found = [path, join(path, "index.html")].find((one) => existsSync(one) && statSync(one).isFile());
    return existsSync(join(directory, host)) ? (found ?? "") : undefined;
  };
  return {
    site(host: string): RequestListener | undefined {
      if (GIT_HOSTS.includes(host)) return (request, response) => gitAnswer(directory, request, response);
      if (!existsSync(join(directory, host))) return undefined;
      return (request, response) => {
        const path = file(host, request.url!);
        if (!path) return void response.writeHead(404).end();
        response.setHeader("Content-Type", path.endsWith(".html") ? "text/html" : "application/octet-stream");
        createReadStream(path).pipe(response);
      };
    },
    repository: join(directory, "greeting.git"),
    ssh: reasonAgainstSsh() === undefined ? sshServer(directory) : undefined,
  };
}

/** git's own program for servers, which speaks CGI. */
function gitAnswer(directory: string, request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.host === "code.test" && request.headers.authorization === undefined) {
    return void response.writeHead(401, { "WWW-Authenticate": 'Basic realm="code"' }).end();
  }
  const [path, query = ""] = request.url!.split("?");
  const env = {
    ...{ PATH: process.env.PATH, GIT_PROJECT_ROOT: directory, GIT_HTTP_EXPORT_ALL: "1", REMOTE_USER: "somebody" },
    ...{ REQUEST_METHOD: request.method, PATH_INFO: path, QUERY_STRING: query },
    ...{ CONTENT_TYPE: request.headers["content-type"], HTTP_CONTENT_ENCODING: request.headers["content-encoding"] },
    HTTP_GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
  };
  const backend = spawn("git", ["http-backend"], { env, stdio: ["pipe", "pipe", "ignore"] });
  request.pipe(backend.stdin.on("error", () => {}));
  let said = Buffer.alloc(0);
  const onData = (piece: Buffer): void => {
    said = Buffer.concat([said, piece]);
    const end = said.indexOf("\r\n\r\n");
    if (end === -1) return;
    backend.stdout.off("data", onData);
    for (const line of said.toString("latin1", 0, end).split("\r\n")) {
      const [name = "", value = ""] = line.split(": ");
      if (name === "Status") response.statusCode = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    response.write(said.subarray(end + 4));
    backend.stdout.pipe(response);
  };
  backend.stdout.on("data", onData);
}

/** A real one for each connection, run by and open to whoever runs this, with a key that lies in the directory. */
function sshServer(directory: string) {
  const [host, client] = ["host-key", "client-key"].map((name) => {
    const path = join(directory, name);
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", path]);
    return path;
  }) as [string, string];
  const config = join(directory, "sshd_config");
  const settings = {
    HostKey: host,
    AuthorizedKeysFile: `${client}.pub`,
    StrictModes: "no",
    UsePAM: "no",
    PidFile: "none",
  };
  writeFileSync(
    config,
    Object.entries(settings)
      .map((line) => `${line.join(" ")}\n`)
      .join(""),
  );
  chmodSync(directory, 0o755);
  // A server of root wants this one, which the system makes when it starts its own.
  if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
  return {
    key: client,
    user: userInfo().username,
    serve(socket: Socket): void {
      const server = spawn(SSHD, ["-i", "-e", "-f", config], { stdio: ["pipe", "pipe", "ignore"] });
      socket.pipe(server.stdin.on("error", () => {}));
      server.stdout.pipe(socket);
      socket.once("close", () => server.stdin.destroy());
    },
  };
}
