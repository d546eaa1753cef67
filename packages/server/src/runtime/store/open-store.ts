import { readFile } from "node:fs/promises";
import type { Log } from "../log.ts";
import { RuntimeError } from "../runtime-error.ts";
import { claimDirectories, claimStorage, lockDeltas } from "./claim.ts";
import type { ClaimPlace } from "./postgres/open-postgres-store.ts";
import { type PostgresPlace, parsePostgresUrl, withoutPassword } from "./postgres/place.ts";
import { openSqliteStore } from "./sqlite/open-sqlite-store.ts";
import type { MetadataStore } from "./store.ts";

/** What the configuration says about the database. */
export interface StoreSettings {
  /** The file of SQLite, where no other database is named. */
  readonly db_path: string;
  /** The URL of PostgreSQL, or "". */
  readonly database: string;
  readonly database_password_file: string;
}

interface ServerStoreOptions {
  readonly leaseMs: number;
  readonly codebases: string;
  readonly mounts: string;
  readonly deltas: string;
  readonly log: Log;
}

/** The store of a server, which is alone with it, and with its directories. */
export interface ServerStore extends AsyncDisposable {
  readonly store: MetadataStore;
  /** The database may be another server's: this one must end what it runs. Never of SQLite, whose file is locked. */
  readonly lost: Promise<Error>;
}

export async function openServerStore(settings: StoreSettings, options: ServerStoreOptions): Promise<ServerStore> {
  const { codebases, deltas, mounts, leaseMs, log } = options;
  await using undo = new AsyncDisposableStack();
  if (settings.database === "") {
    const path = settings.db_path;
    undo.use(await claimStorage({ database: path, codebases, deltas }));
    const store = undo.use(
      await openSqliteStore({ path }).catch((error: unknown) => fail(`the database ${path}`, error)),
    );
    return opened(store, new Promise(() => {}), undo.move());
  }
  undo.use(await lockDeltas(deltas));
  const { openLeasedStore } = await import("./postgres/open-postgres-store.ts");
  const claim: ClaimPlace = async (known) => await claimDirectories({ codebases, deltas, mounts }, known);
  const { store, lost } = await postgresAt(
    settings,
    async (access) => await openLeasedStore({ ...access, leaseMs, claim, log }),
  );
  undo.use(store);
  return opened(store, lost, undo.move());
}

/** The store for the command line, beside a server or without. `mustExist`: nothing is made. */
export async function openStore(
  settings: StoreSettings,
  { mustExist = false }: { readonly mustExist?: boolean } = {},
): Promise<MetadataStore> {
  if (settings.database === "") {
    const path = settings.db_path;
    return await openSqliteStore({ path, mustExist }).catch((error: unknown) => fail(`the database ${path}`, error));
  }
  const { openPostgresStore } = await import("./postgres/open-postgres-store.ts");
  return await postgresAt(settings, async (access) => await openPostgresStore({ ...access, mustExist }));
}

/** "PostgreSQL 15.1 at postgres://…"; undefined: the database is SQLite. Throws where it cannot be used. */
export async function examineStore(settings: StoreSettings): Promise<string | undefined> {
  if (settings.database === "") return undefined;
  const { examinePostgres } = await import("./postgres/open-postgres-store.ts");
  const { server, schema } = await postgresAt(settings, examinePostgres);
  const state = schema === undefined ? "nothing is stored there yet" : `its schema is ${schema}`;
  return `PostgreSQL ${server} answers at ${withoutPassword(settings.database)}; ${state}`;
}

async function postgresAt<Result>(
  settings: StoreSettings,
  work: (access: { readonly place: PostgresPlace; readonly password: string | undefined }) => Promise<Result>,
): Promise<Result> {
  try {
    const place = parsePostgresUrl(settings.database);
    const password = await readPassword(settings.database_password_file);
    return await work({ place, password });
  } catch (error) {
    return fail(`storage.database: ${withoutPassword(settings.database)}`, error);
  }
}

async function readPassword(path: string): Promise<string | undefined> {
  if (path === "") return undefined;
  try {
    return (await readFile(path, "utf8")).replace(/\r?\n$/, "");
  } catch (error) {
    throw new Error(`storage.database_password_file: ${(error as Error).message}`, { cause: error });
  }
}

/** Whoever starts a server or a command line may know all that the database said. */
function fail(what: string, error: unknown): never {
  const { message, hint } = (error instanceof RuntimeError ? error.cause : error) as Error & { readonly hint?: string };
  throw Object.assign(
    new Error(`${what} cannot be used: ${message}`, { cause: error }),
    hint === undefined ? {} : { hint },
  );
}

function opened(store: MetadataStore, lost: Promise<Error>, parts: AsyncDisposableStack): ServerStore {
  return { store, lost, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}
