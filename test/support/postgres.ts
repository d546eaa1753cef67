import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "./eventually.ts";
import { identityOf } from "./identity.ts";

const run = promisify(execFile);

/** Where Debian has the programs of the newest PostgreSQL that is installed. */
const VERSIONS = "/usr/lib/postgresql";

const SETTINGS = {
  fsync: "off",
  listen_addresses: "",
  shared_buffers: "32MB",
  max_connections: "100",
  log_min_messages: "warning",
};

/** A PostgreSQL that somebody has started, on a socket in a directory. */
export class RunningPostgres {
  readonly place: string;
  /** Of its socket, and of loopback where it listens there. */
  protected port = 5432;

  constructor(place: string) {
    this.place = place;
  }

  /** A new, empty database; the role that owns it is not the superuser. */
  async createDatabase(): Promise<string> {
    const name = `test_${randomBytes(6).toString("hex")}`;
    await this.sql(`CREATE DATABASE ${name} OWNER agentfense`);
    return name;
  }

  /** For `storage.database`. */
  url(database: string, user = "agentfense"): string {
    return `postgres:///${database}?host=${this.place}&user=${user}`;
  }

  /** As the superuser; gives what psql prints, without headings. */
  async sql(text: string, database = "postgres"): Promise<string> {
    const args = [
      "-X",
      "-q",
      "-A",
      "-t",
      "-v",
      "ON_ERROR_STOP=1",
      "-h",
      this.place,
      "-p",
      `${this.port}`,
      "-U",
      "postgres",
      "-d",
      database,
    ];
    const { stdout } = await run(program("psql"), [...args, "-c", text]);
    return stdout.trim();
  }
}

/** One of one's own, which can be ended and started again. */
export class OwnPostgres extends RunningPostgres implements AsyncDisposable {
  #process: ChildProcess | undefined;
  #log = "";

  async start(port = 5432, more: Readonly<Record<string, string>> = {}): Promise<void> {
    this.port = port;
    const settings = Object.entries({ ...SETTINGS, port, ...more }).flatMap(([name, value]) => [
      "-c",
      `${name}=${value}`,
    ]);
    const command = [program("postgres"), "-D", join(this.place, "data"), "-k", this.place, ...settings];
    const child = asTestUser(["--pdeathsig", "QUIT", ...command]);
    this.#process = child;
    this.#log = "";
    child.stderr!.on("data", (text: Buffer) => {
      this.#log += text.toString();
    });
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error(`PostgreSQL ended: ${this.#log}`);
      return existsSync(join(this.place, `.s.PGSQL.${port}`)) && (await this.sql("SELECT 1")) === "1";
    });
  }

  /** By default as `pg_ctl stop -m fast` does it: sessions are ended at once. */
  async stop(signal: NodeJS.Signals = "SIGINT"): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("SIGQUIT");
    await rm(this.place, { recursive: true, force: true });
  }
}

/**
 * A cluster of its own, as the ordinary user of the tests. Its databases are sorted as English dictionaries are, so that what
 * relies on the order of bytes has to say so.
 */
export async function startPostgres(): Promise<OwnPostgres> {
  const place = await mkdtemp(join(tmpdir(), "agentfense-postgres-"));
  const postgres = new OwnPostgres(place);
  try {
    const { uid, gid } = identityOf("user");
    if (process.getuid?.() === 0) await chown(place, uid, gid);
    const locale = ["--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en"];
    const how = ["--no-sync", "--auth=trust", "--username=postgres", ...locale, "--pgdata", join(place, "data")];
    await finished(asTestUser([program("initdb"), ...how]));
    await postgres.start();
    await postgres.sql("CREATE ROLE agentfense LOGIN");
    return postgres;
  } catch (error) {
    await postgres[Symbol.asyncDispose]();
    throw error;
  }
}

/** PostgreSQL refuses to run as root. */
function asTestUser(command: readonly string[]): ChildProcess {
  const { uid, gid } = identityOf("user");
  const become = process.getuid?.() === 0 ? ["--reuid", `${uid}`, "--regid", `${gid}`, "--clear-groups"] : [];
  return spawn("setpriv", [...become, ...command], { cwd: "/", stdio: ["ignore", "pipe", "pipe"] });
}

async function finished(child: ChildProcess): Promise<void> {
  const output: Buffer[] = [];
  for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (chunk: Buffer) => output.push(chunk));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(Buffer.concat(output).toString());
}

function program(name: string): string {
  const newest = readdirSync(VERSIONS)
    .filter((version) => /^\d+$/.test(version))
    .sort((a, b) => Number(b) - Number(a))[0];
  return join(VERSIONS, newest ?? "none", "bin", name);
}
