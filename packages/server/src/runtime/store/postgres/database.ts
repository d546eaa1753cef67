import { readFile } from "node:fs/promises";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import type postgres from "postgres";
import type { Log } from "../../log.ts";
import { RuntimeError } from "../../runtime-error.ts";
import type { PostgresPlace } from "./place.ts";
import { readText, writeText } from "./text.ts";

type Value = string | number | null | readonly (string | number | null)[];

export interface DatabaseOptions {
  readonly place: PostgresPlace;
  /** Instead of that of the place. */
  readonly password?: string | undefined;
  readonly connections: number;
  /** What each connection says of itself when it begins: `application_name` and other settings of PostgreSQL. */
  readonly session: Readonly<Record<string, string>>;
  readonly log: Log;
  /** The database is another server's now. */
  readonly onFenced?: (() => void) | undefined;
}

const CONNECT_SECONDS = 10;
/** What else is under way when one connection broke, of which the others may be about to. */
const OTHERS_SECONDS = 1;
/** Of the errors that our own functions in the database raise. */
const FENCED = "AF001";

const HINT = "the server goes on by itself when its database is back; try again";

/**
 * Connections to PostgreSQL. Every question is one statement, which is a transaction by itself: it happens or it does not, in
 * one round trip, and nothing is left open when the connection or this process ends in the middle.
 */
export class Database implements AsyncDisposable {
  readonly #options: DatabaseOptions;
  readonly #open: () => postgres.Sql;
  #pool: postgres.Sql | undefined;
  #closing: Promise<unknown>[] = [];
  #isClosed = false;
  #isReachable = true;

  private constructor(options: DatabaseOptions, open: () => postgres.Sql) {
    this.#options = options;
    this.#open = open;
  }

  /** Connects with the first question. */
  static async open(options: DatabaseOptions): Promise<Database> {
    const { place, password, connections, session } = options;
    const [client, ssl] = await Promise.all([loadClient(), tlsOptions(place)]);
    const settings: postgres.Options<Record<string, postgres.PostgresType>> = {
      host: place.host,
      port: place.port,
      database: place.database,
      ...(place.host.startsWith("/") ? { path: `${place.host}/.s.PGSQL.${place.port}` } : {}),
      ...(place.user === "" ? {} : { username: place.user }),
      ...((password ?? place.password) === "" ? {} : { password: password ?? place.password }),
      ssl,
      max: connections,
      connect_timeout: CONNECT_SECONDS,
      // A connection that was refused is tried again with the next question, and not later and later.
      backoff: () => 0,
      connection: {
        // One statement may look at what was committed after it began: limits rely on it.
        default_transaction_isolation: "read committed",
        search_path: "agentfense",
        ...session,
      },
      types: {
        text: { to: 25, from: [25], serialize: writeText, parse: readText },
        int8: { to: 20, from: [20], serialize: String, parse: Number },
      },
      onnotice: () => {},
    };
    return new Database(options, () => client(settings));
  }

  async all<Row>(statement: string, values: readonly Value[] = []): Promise<Row[]> {
    return (await this.#ask(statement, values)) as unknown as Row[];
  }

  async get<Row>(statement: string, values: readonly Value[] = []): Promise<Row | undefined> {
    return (await this.all<Row>(statement, values))[0];
  }

  /** Gives how many rows were changed, or returned. */
  async run(statement: string, values: readonly Value[] = []): Promise<number> {
    return (await this.#ask(statement, values)).count;
  }

  /** Several statements in one transaction, without values. */
  async script(text: string): Promise<void> {
    await this.#ask(text, undefined);
  }

  /** What was asked before is still answered. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#retire(CONNECT_SECONDS);
    await Promise.all(this.#closing);
  }

  async #ask(statement: string, values: readonly Value[] | undefined): Promise<postgres.RowList<postgres.Row[]>> {
    if (this.#isClosed) throw new Error("the metadata store is closed");
    this.#pool ??= this.#open();
    const pool = this.#pool;
    try {
      const rows =
        values === undefined
          ? await pool.unsafe(statement).simple()
          : await pool.unsafe(statement, values as postgres.ParameterOrJSON<never>[], { prepare: true });
      this.#reached();
      return rows;
    } catch (error) {
      throw this.#failure(error, pool);
    }
  }

  #failure(error: unknown, pool: postgres.Sql): unknown {
    const { code = "" } = error as { readonly code?: string };
    if (code === FENCED) {
      this.#options.onFenced?.();
      return new RuntimeError("DATABASE_UNAVAILABLE", "another server has taken this one's place", {
        hint: "ask the other one",
        cause: error,
      });
    }
    if (code === "53100")
      return new RuntimeError("RESOURCES_EXHAUSTED", "the database's disk is full", { cause: error });
    if (!isUnreachable(code)) return error;
    // A client that met a broken connection is not asked again: what it remembers of the connection is of no use.
    if (this.#pool === pool) this.#retire(OTHERS_SECONDS);
    if (this.#isReachable) {
      this.#isReachable = false;
      const message = `the database cannot be reached: ${(error as Error).message}`;
      this.#options.log({ level: "error", message });
    }
    return new RuntimeError("DATABASE_UNAVAILABLE", "the server cannot reach its database", {
      hint: HINT,
      cause: error,
    });
  }

  #reached(): void {
    if (this.#isReachable) return;
    this.#isReachable = true;
    this.#options.log({ level: "info", message: "the database is back" });
  }

  #retire(timeout: number): void {
    const pool = this.#pool;
    this.#pool = undefined;
    if (pool === undefined) return;
    const closing = pool.end({ timeout }).catch(() => {});
    this.#closing.push(closing);
    void closing.then(() => {
      this.#closing = this.#closing.filter((each) => each !== closing);
    });
  }
}

/** Of the client and of Node; the rest are states of PostgreSQL. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  ...["CONNECTION_CLOSED", "CONNECTION_ENDED", "CONNECTION_DESTROYED", "CONNECT_TIMEOUT"],
  ...[
    "ECONNREFUSED",
    "ECONNRESET",
    "EPIPE",
    "ENOENT",
    "ETIMEDOUT",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "ENOTFOUND",
    "EAI_AGAIN",
  ],
  // Shutting down, crashed, starting, a dropped database; too many connections; a standby that only reads; refused.
  ...["57P01", "57P02", "57P03", "57P04", "53300", "25006", "28000", "28P01"],
]);

function isUnreachable(code: string): boolean {
  return UNREACHABLE.has(code) || code.startsWith("08");
}

async function loadClient(): Promise<typeof postgres> {
  try {
    return (await import("postgres")).default;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw Object.assign(new Error("PostgreSQL needs the package postgres, which is not installed", { cause: error }), {
      hint: "install it beside agentfense: npm install postgres (with --global where agentfense was)",
    });
  }
}

async function tlsOptions({ host, tls }: PostgresPlace): Promise<false | ConnectionOptions> {
  const { mode, rootCertificates, certificate, key } = tls;
  if (mode === "disable") return false;
  const read = async (parameter: string, path: string): Promise<string | undefined> =>
    path === ""
      ? undefined
      : await readFile(path, "utf8").catch((error: Error) => {
          throw new Error(`${parameter}: ${error.message}`);
        });
  const [ca, cert, keyText] = await Promise.all([
    read("sslrootcert", rootCertificates),
    read("sslcert", certificate),
    read("sslkey", key),
  ]);
  return {
    rejectUnauthorized: mode !== "require",
    // The client does not say which host it means where that is an address, and Node would look for "localhost".
    checkServerIdentity: (_name, found) => (mode === "verify-full" ? checkServerIdentity(host, found) : undefined),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert, key: keyText }),
  };
}
