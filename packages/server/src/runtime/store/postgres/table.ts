import { type Cell, type Columns, Records } from "../columns.ts";
import type { Database } from "./database.ts";

type Value = Cell | readonly string[];

/** Conditions of a query and the values that they name, by their places. */
export class Conditions {
  readonly #conditions: string[] = [];
  readonly values: Value[] = [];

  /** `?` is where the value goes; without a value, there is no condition. */
  add(condition: string, value: Value | undefined): this {
    if (value === undefined) return this;
    this.#conditions.push(condition.replace("?", this.place(value)));
    return this;
  }

  /** Of lists in the order of (created_at, id). */
  after(key: readonly [createdAtMs: number, id: string] | undefined): this {
    if (key === undefined) return this;
    this.#conditions.push(`(created_at, id) > (${this.place(key[0])}, ${this.place(key[1])})`);
    return this;
  }

  /** Another value: gives what names it. */
  place(value: Value): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  toString(): string {
    return this.#conditions.length === 0 ? "" : `WHERE ${this.#conditions.join(" AND ")}`;
  }
}

interface Insertion {
  readonly statement: string;
  readonly values: readonly Value[];
  /** Another value: gives what names it. */
  place(value: Value): string;
}

/** A table whose rows are records. */
export class Table<R extends object> {
  readonly #name: string;
  readonly #records: Records<R>;

  constructor(name: string, columns: Columns<R>) {
    this.#name = name;
    this.#records = new Records(columns);
  }

  get selected(): string {
    return this.#records.selected;
  }

  async get(database: Database, rest: string, values: readonly Value[]): Promise<R | undefined> {
    return (await this.all(database, rest, values))[0];
  }

  /** `rest`: what follows the name of the table in the statement. */
  async all(database: Database, rest: string, values: readonly Value[]): Promise<R[]> {
    return await this.ask(database, `SELECT ${this.selected} FROM ${this.#name} ${rest}`, values);
  }

  /** Of a statement that gives what is `selected`. */
  async ask(database: Database, statement: string, values: readonly Value[]): Promise<R[]> {
    return this.#records.read(await database.all(statement, values));
  }

  /** Those that meet every condition. */
  async list(database: Database, conditions: Conditions, order: string, limit?: number): Promise<R[]> {
    const end = limit === undefined ? "" : ` LIMIT ${conditions.place(limit)}`;
    return await this.all(database, `${conditions} ORDER BY ${order}${end}`, conditions.values);
  }

  /** "INSERT INTO t (a, b) SELECT …" of a record, with columns that are no part of it; what follows may name more values. */
  insertion(record: R, more: Readonly<Record<string, Value>> = {}): Insertion {
    const row = { ...this.#records.row(record), ...more };
    const names = Object.keys(row);
    const places = names.map((_, at) => `$${at + 1}`).join(", ");
    const values: Value[] = Object.values(row);
    return {
      statement: `INSERT INTO ${this.#name} (${names.join(", ")}) SELECT ${places}`,
      values,
      place: (value) => `$${values.push(value)}`,
    };
  }

  async insert(database: Database, record: R): Promise<void> {
    const { statement, values } = this.insertion(record);
    await database.run(statement, values);
  }

  /** Gives what it is then; undefined: there is none. */
  async update(database: Database, id: string, changes: Partial<R>): Promise<R | undefined> {
    const row = this.#records.row(changes);
    const names = Object.keys(row);
    if (names.length === 0) return await this.get(database, "WHERE id = $1", [id]);
    const assignments = names.map((name, at) => `${name} = $${at + 2}`).join(", ");
    const statement = `UPDATE ${this.#name} SET ${assignments} WHERE id = $1 RETURNING ${this.selected}`;
    return (await this.ask(database, statement, [id, ...Object.values(row)]))[0];
  }
}
