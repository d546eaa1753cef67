import { hostname } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import type { Log } from "../../log.ts";
import type { Database } from "./database.ts";

// Whose the database is.
//
// One row says which server acts on it, by an epoch that grows with every server, and until when. The server renews the lease
// long before its end; when it cannot, it takes itself to be dead at the end of the lease, and ends what it runs. Another takes
// over after that end, by a greater epoch. Each connection carries the epoch of its server, and a trigger on every table holds
// the row of that epoch for the length of the transaction (migrations.ts): whoever takes over waits for what is under way, and
// nothing of the earlier server gets in afterwards, however late it wakes.
//
// The times are those of the database's clock; a server compares its own with nothing but itself. A clock that jumps gives the
// database away too early at worst, and then the fence holds.

/** The directories of a server, which nobody else on this machine has: they are locked. */
export interface Claim {
  /** What the database knows them by. */
  readonly place: string;
  /** Where they are, on this machine since its last start: a server that had them here is dead. */
  readonly here: string;
}

export interface LeaseOptions extends Claim {
  readonly leaseMs: number;
  readonly log: Log;
}

interface LeaseRow {
  readonly epoch: number;
  readonly holder: string;
  readonly place: string;
  readonly expiry: string;
  readonly left_ms: number;
}

/** The database belongs to somebody who is not dead. */
class DatabaseInUse extends Error {}

export class Lease implements AsyncDisposable {
  readonly epoch: number;
  /** Somebody else may act on the database from here on, or does. */
  readonly lost: Promise<Error>;
  readonly #database: Database;
  readonly #leaseMs: number;
  readonly #renewals: NodeJS.Timeout;
  #end: NodeJS.Timeout;
  readonly #lose: (reason: Error) => void;

  private constructor(database: Database, epoch: number, leaseMs: number, askedAtMs: number) {
    const { promise, resolve } = Promise.withResolvers<Error>();
    this.lost = promise;
    this.#lose = resolve;
    this.epoch = epoch;
    this.#database = database;
    this.#leaseMs = leaseMs;
    this.#end = this.#endingAt(askedAtMs + leaseMs);
    // Two of them may be lost.
    this.#renewals = setInterval(() => void this.#renew(), leaseMs / 3).unref();
  }

  /** Waits for the end of a lease that nobody renews. */
  static async take(database: Database, { place, here, leaseMs, log }: LeaseOptions): Promise<Lease> {
    const holder = `${here} ${hostname()} ${process.pid}`;
    let first: LeaseRow | undefined;
    for (;;) {
      const row = await leaseOf(database);
      if (row.place !== "" && row.place !== place) {
        throw new DatabaseInUse(`it belongs to the directories of another server, ${ownerOf(row)}`);
      }
      const askedAtMs = performance.now();
      const isFree = row.left_ms <= 0 || row.holder.startsWith(`${here} `);
      if (isFree && (await take(database, row, { holder, place, leaseMs }))) {
        return new Lease(database, row.epoch + 1, leaseMs, askedAtMs);
      }
      if (isFree) continue;
      first ??= row;
      if (row.expiry !== first.expiry) throw new DatabaseInUse(`it is in use by another server, ${ownerOf(row)}`);
      log({ level: "info", message: `waiting until the lease of another server ends, ${ownerOf(row)}` });
      await wait(row.left_ms + 1);
    }
  }

  /** The database itself said so. */
  lose(): void {
    this.#lose(new Error("another server has taken over the database"));
  }

  /** Gives it back, so that the next server need not wait. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#renewals);
    clearTimeout(this.#end);
    await this.#database
      .run("UPDATE lease SET expires_at = '-infinity' WHERE epoch = $1", [this.epoch])
      .catch(() => {}); // then it ends by itself
  }

  async #renew(): Promise<void> {
    const askedAtMs = performance.now();
    try {
      const renewed = await this.#database.run(
        "UPDATE lease SET expires_at = clock_timestamp() + $2 * interval '1 millisecond' WHERE epoch = $1",
        [this.epoch, this.#leaseMs],
      );
      if (renewed === 0) this.lose();
    } catch {
      return; // whoever asks the database tells the log
    }
    clearTimeout(this.#end);
    this.#end = this.#endingAt(askedAtMs + this.#leaseMs);
  }

  #endingAt(timeMs: number): NodeJS.Timeout {
    const reason = new Error(
      `the database could not be reached for ${this.#leaseMs / 1000} s: another server may have it`,
    );
    return setTimeout(() => this.#lose(reason), timeMs - performance.now()).unref();
  }
}

async function leaseOf(database: Database): Promise<LeaseRow> {
  const row = await database.get<LeaseRow>(
    `SELECT epoch, holder, place, expires_at::text AS expiry, CASE WHEN isfinite(expires_at)
       THEN ceil(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint ELSE 0 END AS left_ms
     FROM lease`,
  );
  if (row === undefined) throw new Error("the lease of the database is missing");
  return row;
}

/** False: somebody else was faster, or the lease was renewed after all. */
async function take(
  database: Database,
  { epoch, expiry }: LeaseRow,
  { holder, place, leaseMs }: { readonly holder: string; readonly place: string; readonly leaseMs: number },
): Promise<boolean> {
  // One that froze in the middle of a statement would be waited for without end.
  await database.get(
    `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
     WHERE datname = current_database() AND usename = current_user AND application_name = $1`,
    [sessionName(epoch)],
  );
  const taken = await database.run(
    `UPDATE lease SET epoch = epoch + 1, holder = $3, place = $4,
       expires_at = clock_timestamp() + $5 * interval '1 millisecond'
     WHERE epoch = $1 AND expires_at::text = $2`,
    [epoch, expiry, holder, place, leaseMs],
  );
  return taken > 0;
}

/** The `application_name` of the connections that write with an epoch. */
export function sessionName(epoch: number): string {
  return `agentfense epoch ${epoch}`;
}

/** "on HOST, process 17" */
function ownerOf({ holder }: LeaseRow): string {
  const [, host = "", pid = ""] = holder.split(" ");
  return `on ${host}, process ${pid}`;
}
