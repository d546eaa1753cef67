import type { SQLInputValue } from "node:sqlite";
import { type Columns, Records } from "../columns.ts";
import type { Database, Row } from "./database.ts";

/** A table whose rows are records. */
export class Table<R extends object> {
  readonly #name: string;
  readonly #records: Records<R>;
  readonly #select: string;

  constructor(name: string, columns: Columns<R>) {
    this.#name = name;
    this.#records = new Records(columns);
    this.#select = `SELECT ${this.#records.selected} FROM ${name}`;
  }

  get(database: Database, rest: string, ...values: SQLInputValue[]): R | undefined {
    return this.all(database, rest, ...values)[0];
  }

  /** `rest`: what follows the name of the table in the statement. */
  all(database: Database, rest: string, ...given: SQLInputValue[] | [Row]): R[] {
    return this.#records.read(database.all(`${this.#select} ${rest}`, ...given));
  }

  /** Those that pass every filter. */
  list(database: Database, filters: readonly Filter[], order: string, limit: number): R[] {
    return this.all(database, `${where(filters)} ORDER BY ${order} LIMIT :limit`, values(filters, { limit }));
  }

  /** `more`: columns that are no part of the record. */
  insert(database: Database, record: R, more: Row = {}): void {
    database.insert(this.#name, { ...more, ...this.#records.row(record) });
  }

  update(database: Database, id: string, changes: Partial<R>): void {
    const row = this.#records.row(changes);
    const assignments = Object.keys(row).map((name) => `${name} = :${name}`);
    if (assignments.length === 0) return;
    database.prepare(`UPDATE ${this.#name} SET ${assignments.join(", ")} WHERE id = :id`).run({ ...row, id });
  }
}

/** One condition of a query, with the parameters that it names. */
export type Filter = readonly [condition: string, values: Row];

/** None when there is nothing to compare with. */
export function matching(column: string, value: SQLInputValue | undefined, operator = "=", name = column): Filter[] {
  return value === undefined ? [] : [[`${column} ${operator} :${name}`, { [name]: value }]];
}

/** Of lists in the order of (created_at, id). */
export function afterKey(after: readonly [createdAtMs: number, id: string] | undefined): Filter[] {
  if (after === undefined) return [];
  return [["(created_at, id) > (:after_time, :after_id)", { after_time: after[0], after_id: after[1] }]];
}

export function where(filters: readonly Filter[]): string {
  return filters.length === 0 ? "" : `WHERE ${filters.map(([condition]) => condition).join(" AND ")}`;
}

export function values(filters: readonly Filter[], more: Row): Row {
  return Object.assign({ ...more }, ...filters.map(([, named]) => named)) as Row;
}
