import { chmodSync, closeSync, constants, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { migrate, refuseForeign } from "./migrations.ts";

/** How long a call waits for another process (the command line, with the server running) that is writing. */
const BUSY_TIMEOUT_MS = 10_000;
/** What the write-ahead log shrinks to after a large change. */
const JOURNAL_BYTES = 16 * 1024 * 1024;

/** Enough for the pages of a change of ten thousand entries: what does not fit is written twice. */
const CACHE_KIB = 32 * 1024;

export type Row = Readonly<Record<string, SQLInputValue>>;

/** A connection with its prepared statements. Everything here blocks: it lives in the thread of the store. */
export class Database {
  readonly #connection: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  private constructor(connection: DatabaseSync) {
    this.#connection = connection;
  }

  /** Gone when it is closed. */
  static inMemory(): Database {
    const connection = new DatabaseSync(":memory:", { enableForeignKeyConstraints: true });
    migrate(connection);
    return new Database(connection);
  }

  static open(path: string): Database {
    makeFile(path);
    const connection = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true });
    try {
      refuseForeign(connection);
      chmodSync(path, 0o600);
      // With WAL, NORMAL survives the death of the process at any point; a loss of power can cost the last transactions
      // but never the consistency of the file.
      connection.exec("PRAGMA journal_mode = WAL");
      connection.exec("PRAGMA synchronous = NORMAL");
      connection.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
      connection.exec(`PRAGMA journal_size_limit = ${JOURNAL_BYTES}`);
      migrate(connection);
      return new Database(connection);
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  // The texts are ours and few (conditions are put together from a fixed set), so the cache needs no bound.
  prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#connection.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  get<Result>(sql: string, ...values: SQLInputValue[]): Result | undefined {
    return this.prepare(sql).get(...values) as Result | undefined;
  }

  /** With parameters by place, or one object that has them by name. */
  all<Result>(sql: string, ...values: SQLInputValue[] | [Row]): Result[] {
    return this.prepare(sql).all(...(values as SQLInputValue[])) as Result[];
  }

  /** Gives how many rows were changed. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.prepare(sql).run(...values).changes);
  }

  insert(table: string, row: Row): void {
    const names = Object.keys(row);
    this.prepare(
      `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map((name) => `:${name}`).join(", ")})`,
    ).run(row);
  }

  /** Several statements that see one state of the database. */
  read<Result>(work: () => Result): Result {
    return this.#transaction("BEGIN DEFERRED", work);
  }

  /** All or nothing. Takes the lock for writing at once: asking for it halfway fails when another process has it. */
  write<Result>(work: () => Result): Result {
    return this.#transaction("BEGIN IMMEDIATE", work);
  }

  close(): void {
    this.#connection.close();
  }

  #transaction<Result>(begin: string, work: () => Result): Result {
    this.#connection.exec(begin);
    try {
      const result = work();
      this.#connection.exec("COMMIT");
      return result;
    } catch (error) {
      // A full disk, for one, makes SQLite roll back by itself.
      if (this.#connection.isTransaction) this.#connection.exec("ROLLBACK");
      throw error;
    }
  }
}

/** Nobody but the server's user reads what is in here; SQLite gives its side files the mode of the database. */
function makeFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    closeSync(openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ELOOP") throw error;
    throw new Error("the database file must not be a symbolic link", { cause: error });
  }
}
