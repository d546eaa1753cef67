import { execFileSync } from "node:child_process";
import { chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually, withoutHanging } from "../../../../../test/support/eventually.ts";
import { identityOf } from "../../../../../test/support/identity.ts";
import { startPostgres } from "../../../../../test/support/postgres.ts";
import { verifyAudit } from "../../../src/runtime/audit/verify.ts";
import type { LogLine } from "../../../src/runtime/log.ts";
import { openStore } from "../../../src/runtime/store/open-store.ts";
import { Database } from "../../../src/runtime/store/postgres/database.ts";
import { migrate } from "../../../src/runtime/store/postgres/migrations.ts";
import { examinePostgres, openPostgresStore } from "../../../src/runtime/store/postgres/open-postgres-store.ts";
import { parsePostgresUrl, withoutPassword } from "../../../src/runtime/store/postgres/place.ts";
import type { MetadataStore } from "../../../src/runtime/store/store.ts";
import { describeStore } from "./contract.ts";
import { databaseOfFile, TestDatabase } from "./postgres-database.ts";
import { codebase, event, file, journal, key, sandbox, secret, session } from "./records.ts";

const database = databaseOfFile();

async function opened(options: Parameters<TestDatabase["open"]>[0] = {}) {
  const leased = await database().open(options);
  onTestFinished(() => leased.store[Symbol.asyncDispose]());
  return leased;
}

describe("the contract", () => {
  describeStore("postgres", async () => {
    await database().empty();
    return (await database().open()).store;
  });
});

describe("one server at a time", () => {
  test("CL-01 another takes over when a lease is not renewed, and then nothing of the first gets in", async () => {
    await database().empty();
    const first = await opened({ leaseMs: 600_000, here: "one-machine" });
    await first.store.insertCodebase(codebase({ id: "cb_1" }));
    await first.store.insertSandbox(sandbox({ id: "sb_1" }), 0);
    // As if the first had slept through the end of its lease.
    await database().sql("UPDATE agentfense.lease SET expires_at = now() - interval '1 second'");
    const second = await opened({ here: "another-machine" });

    const change = journal("cb_1", 1, [{ path: "a", before: undefined, after: file("a") }]);
    const writes: readonly ((store: MetadataStore) => Promise<unknown>)[] = [
      (store) => store.insertCodebase(codebase({ id: "cb_2" })),
      (store) => store.beginChange(change),
      (store) => store.settleChange("cb_1"),
      (store) => store.insertSandbox(sandbox({ id: "sb_2" }), 5),
      (store) => store.updateSandbox("sb_1", { status: "RUNNING" }),
      (store) => store.insertSession(session({ id: "se_1", sandboxId: "sb_1" })),
      (store) => store.closeAllSessions(5, ""),
      (store) => store.appendEvents([event()]),
      (store) => store.insertKey(key({ id: "key_1" })),
      (store) => store.touchKey("key_1", 5),
      (store) => store.putSecret(secret({ name: "A" }), 0),
      (store) => store.deleteSecret("ann", "A"),
      (store) => store.deleteSandbox("sb_1"),
      (store) => store.deleteCodebase("cb_1"),
    ];
    for (const write of writes) {
      await expect(write(first.store), `${write}`).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    }
    expect((await first.lost).message).toContain("another server");
    expect(await second.store.listSandboxes({})).toEqual([sandbox({ id: "sb_1" })]);
    expect(await second.store.listCodebases({ limit: 9 })).toEqual([codebase({ id: "cb_1" })]);
    expect(await second.store.chainHead()).toMatchObject({ sequence: 0 });
    for (const write of writes) await write(second.store);
  });

  test("a change that is begun under one epoch is finished under the next alone", async () => {
    await database().empty();
    const first = await opened({ here: "one-machine" });
    await first.store.insertCodebase(codebase({ id: "cb_1" }));
    await first.store.beginChange(journal("cb_1", 1, [{ path: "a", before: undefined, after: file("a") }]));
    await database().sql("UPDATE agentfense.lease SET expires_at = '-infinity'");
    const second = await opened({ here: "another-machine" });
    const finished = await Promise.allSettled([first.store.finishChange("cb_1"), second.store.finishChange("cb_1")]);
    expect(finished.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    expect(await second.store.codebase("cb_1")).toMatchObject({ version: 1, fileCount: 1 });
  });

  test("a server that renews its lease keeps others out, and says who it is", async () => {
    await opened({ leaseMs: 1_500, here: "one-machine" });
    await expect(withoutHanging(() => opened({ here: "another-machine" }))).rejects.toThrow(
      /in use by another server, on \S+, process \d+/,
    );
    await expect(opened({ place: "other directories" })).rejects.toThrow("directories of another server");
  });

  test("where its directories are ours now, the server before is dead, and nobody waits for its lease", async () => {
    const first = await opened({ here: "this-machine" });
    const second = await opened({ here: "this-machine" });
    await second.store.insertKey(key({ id: "key_again" }));
    await expect(first.store.listKeys().then(() => first.store.touchKey("key_again", 1))).rejects.toThrow();
  });

  test("a transaction of a frozen server is not waited for", async () => {
    await database().empty();
    const { postgres, name } = database();
    await opened({ here: "one-machine" });
    const [epoch] = (await database().sql("SELECT epoch FROM agentfense.lease")).split("\n");
    // A session that looks like one of the first server, in the middle of a transaction that has passed the fence.
    await using frozen = await Database.open({
      place: parsePostgresUrl(postgres.url(name)),
      connections: 1,
      session: { application_name: `agentfense epoch ${epoch}`, "agentfense.epoch": `${epoch}` },
      log: () => {},
    });
    await frozen.script("BEGIN");
    await frozen.run("INSERT INTO keys VALUES ('key_frozen', '', 'user', '', '', 0, NULL, NULL)");
    await database().sql("UPDATE agentfense.lease SET expires_at = '-infinity'");
    const second = await withoutHanging(() => opened({ here: "another-machine" }));
    await frozen.script("COMMIT").catch(() => {}); // of nothing, on another connection
    expect(await second.store.listKeys()).toEqual([]);
  });

  test("a server that cannot renew its lease takes itself for dead", async () => {
    await using postgres = await startPostgres();
    const own = new TestDatabase(postgres, await postgres.createDatabase());
    const { store, lost } = await own.open({ leaseMs: 1_000 });
    await postgres.stop();
    expect((await withoutHanging(() => lost)).message).toContain("could not be reached for 1 s");
    await store[Symbol.asyncDispose]();
  });

  test("every table but the lease and the version has the fence", async () => {
    await opened();
    const tables = await database().sql(`SELECT t.tablename FROM pg_tables AS t
      WHERE schemaname = 'agentfense' AND NOT EXISTS (
        SELECT FROM pg_trigger WHERE tgname = 'fence' AND tgrelid = format('agentfense.%I', t.tablename)::regclass)
      ORDER BY 1`);
    expect(tables.split("\n")).toEqual(["lease", "schema_version"]);
  });

  test("the command line changes keys beside a server, and nothing else", async () => {
    await database().empty();
    const server = await opened();
    await using commandLine = await openPostgresStore({ place: database().place });
    await commandLine.insertKey(key({ id: "key_1" }));
    expect(await server.store.key("key_1")).toEqual(key({ id: "key_1" }));
    await expect(commandLine.insertSandbox(sandbox({ id: "sb_1" }), 0)).rejects.toThrow();
    await server.store.appendEvents([event(), event()]);
    expect(await verifyAudit(commandLine)).toEqual({ ok: true, events: 2 });
    await database().sql("UPDATE agentfense.events SET owner_id = 'eve' WHERE sequence = 2");
    expect(await verifyAudit(commandLine)).toMatchObject({ ok: false, sequence: 2 });
  });
});

describe("a PostgreSQL that goes away", () => {
  test("calls fail with a hint meanwhile, nothing acknowledged is lost, and then it goes on by itself", async () => {
    await using postgres = await startPostgres();
    const own = new TestDatabase(postgres, await postgres.createDatabase());
    const logged: LogLine[] = [];
    const { store, lost } = await own.open({ log: (line) => logged.push(line) });
    let isLost = false;
    void lost.then(() => {
      isLost = true;
    });
    await store.insertCodebase(codebase({ id: "cb_1" }));
    let acknowledged = 0;
    const refusals = new Set<unknown>();
    let isWriting = true;
    const writers = Array.from({ length: 8 }, async () => {
      while (isWriting) {
        const appended = await store.appendEvents([event()]).catch((error: { code?: unknown; hint?: unknown }) => {
          refusals.add(error.code);
          expect(error.hint).toContain("goes on by itself");
          return [];
        });
        acknowledged += appended.length;
        if (appended.length === 0) await new Promise(setImmediate);
      }
    });
    for (const signal of ["SIGINT", "SIGQUIT"] as const) {
      const before = acknowledged;
      await eventually(() => acknowledged > before + 20);
      await postgres.stop(signal);
      await eventually(() => refusals.size > 0);
      await postgres.start();
    }
    const before = acknowledged;
    await eventually(() => acknowledged > before + 20);
    isWriting = false;
    await Promise.all(writers);
    expect([...refusals]).toEqual(["DATABASE_UNAVAILABLE"]);
    // What was not acknowledged may be there too: eight were under way each time.
    const { sequence } = await store.chainHead();
    expect(sequence).toBeGreaterThanOrEqual(acknowledged);
    expect(sequence).toBeLessThanOrEqual(acknowledged + 16);
    expect(await verifyAudit(store)).toEqual({ ok: true, events: sequence });
    expect(await store.codebase("cb_1")).toEqual(codebase({ id: "cb_1" }));
    const told = logged.map(({ level, message }) => `${level} ${message.split(":")[0]}`);
    expect(new Set(told)).toEqual(new Set(["error the database cannot be reached", "info the database is back"]));
    expect(told.at(-1)).toBe("info the database is back");
    expect(told.some((line, at) => line === told[at + 1])).toBe(false);
    expect(isLost).toBe(false);
    await store[Symbol.asyncDispose]();
  });
});

describe("TLS", () => {
  test("is checked as far as sslmode says, and never left out", async () => {
    await using postgres = await startPostgres();
    const name = await postgres.createDatabase();
    await postgres.stop();
    const [certificate, key] = [join(postgres.place, "certificate.pem"), join(postgres.place, "key.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", ...subject];
    execFileSync("openssl", [...made, "-keyout", key, "-out", certificate], { stdio: "pipe" });
    const { uid, gid } = identityOf("user");
    if (process.getuid?.() === 0) await chown(key, uid, gid);
    const port = await freePort();
    const listening = { listen_addresses: "127.0.0.1" };
    await postgres.start(port, { ...listening, ssl: "on", ssl_cert_file: certificate, ssl_key_file: key });
    const reach = async (host: string, parameters: string): Promise<string> => {
      const place = parsePostgresUrl(`postgres://agentfense@${host}:${port}/${name}?${parameters}`);
      return await examinePostgres({ place }).then(
        () => "reached",
        (error: { readonly cause?: Error }) => String(error.cause?.message ?? error),
      );
    };
    expect(await reach("localhost", "sslmode=disable")).toBe("reached");
    expect(await reach("localhost", "sslmode=require")).toBe("reached");
    expect(await reach("localhost", "sslmode=verify-full")).toContain("self-signed certificate");
    expect(await reach("localhost", `sslmode=verify-full&sslrootcert=${certificate}`)).toBe("reached");
    expect(await reach("127.0.0.1", `sslmode=verify-full&sslrootcert=${certificate}`)).toContain("does not match");
    expect(await reach("127.0.0.1", `sslmode=verify-ca&sslrootcert=${certificate}`)).toBe("reached");
    await postgres.stop();
    await postgres.start(port, listening);
    expect(await reach("localhost", "sslmode=require")).not.toBe("reached");
  });
});

/** One that nobody listens at. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe("the schema", () => {
  test("one of a newer version is refused, and stays as it is", async () => {
    const own = new TestDatabase(database().postgres, await database().postgres.createDatabase());
    await (await own.open()).store[Symbol.asyncDispose]();
    await own.sql("UPDATE agentfense.schema_version SET version = 99");
    await expect(own.open()).rejects.toThrow("the database has schema 99");
    await expect(own.open()).rejects.toThrow("written by a newer one");
    expect(await own.sql("SELECT version FROM agentfense.schema_version")).toBe("99");
  });

  test("steps are taken once each, in order, and a failing one leaves the step before", async () => {
    const { postgres } = database();
    const name = await postgres.createDatabase();
    const connect = async () => {
      const one = await Database.open({
        place: parsePostgresUrl(postgres.url(name)),
        connections: 1,
        session: {},
        log: () => {},
      });
      onTestFinished(() => one[Symbol.asyncDispose]());
      return one;
    };
    const [one, other] = await Promise.all([connect(), connect()]);
    const steps = ["CREATE TABLE a (x int)", "INSERT INTO a VALUES (1)"];
    const rows = () => one.get("SELECT count(*) AS rows FROM a");
    await migrate(one, steps.slice(0, 1));
    await Promise.all([migrate(one, steps), migrate(other, steps), migrate(other, steps)]);
    expect(await rows()).toEqual({ rows: 1 });
    const failing = [...steps, "INSERT INTO a VALUES (2); INSERT INTO nowhere VALUES (1)"];
    await expect(migrate(one, failing)).rejects.toThrow("nowhere");
    expect(await rows()).toEqual({ rows: 1 });
    await migrate(other, steps);
  });

  test("a schema of our name with tables of somebody else is left alone", async () => {
    const own = new TestDatabase(database().postgres, await database().postgres.createDatabase());
    await own.sql("CREATE SCHEMA agentfense AUTHORIZATION agentfense; CREATE TABLE agentfense.theirs (x int)");
    await expect(own.open()).rejects.toThrow("is not one of AgentFense");
    await own.sql("DROP TABLE agentfense.theirs");
    await (await own.open()).store[Symbol.asyncDispose]();
  });

  test("who wants what is there makes nothing", async () => {
    const { postgres } = database();
    const place = parsePostgresUrl(postgres.url(await postgres.createDatabase()));
    await expect(openPostgresStore({ place, mustExist: true })).rejects.toThrow("no AgentFense has stored anything");
  });
});

describe("the URL of a database", () => {
  test.each([
    ["postgres://ann@db.example.org/app", { host: "db.example.org", port: 5432, user: "ann", mode: "verify-full" }],
    [
      "postgresql://ann:p%40ss@127.0.0.1:6432/app",
      { host: "127.0.0.1", port: 6432, password: "p@ss", mode: "disable" },
    ],
    ["postgres://[::1]/app", { host: "::1", user: "", mode: "disable" }],
    ["postgres:///app?host=/run/postgresql&user=ann", { host: "/run/postgresql", user: "ann", mode: "disable" }],
    ["postgres://db.example.org/app?sslmode=require", { mode: "require" }],
  ])("%s is understood", (url, expected) => {
    const { tls, ...place } = parsePostgresUrl(url);
    expect({ ...place, mode: tls.mode, database: "app" }).toMatchObject(expected);
  });

  test.each([
    ["mysql://db/app", "must begin with postgres://"],
    ["postgres://ann:pa@ss#word@db/app", "%23"],
    ["postgres://db", "names no database"],
    ["postgres:///app", "names no host"],
    ["postgres://a,b/app", "several hosts"],
    ["postgres://db/app?sslmode=prefer", "sslmode must be one of disable, require, verify-ca, verify-full"],
    ["postgres://db/app?sslcert=a", "sslcert and sslkey go together"],
    ["postgres://db/app?options=-c", 'a parameter that is not known: "options"'],
    ["postgres://ann:%zz@db/app", "written as %25"],
  ])("%s is refused", (url, reason) => {
    expect(() => parsePostgresUrl(url)).toThrow(reason);
  });

  test.each([
    ["postgres://ann:secret@db/app", "postgres://ann:***@db/app"],
    ["postgres://ann:sec@ret:x@db/app?sslmode=require", "postgres://ann:***@db/app?sslmode=require"],
    ["postgres://ann@db/app", "postgres://ann@db/app"],
    ["postgre//ann:secret@db/app", "postgre//ann:***@db/app"],
    ["ann:secret@db", "ann:***@db"],
    ["postgres://db/app?password=secret&x=1", "postgres://db/app?password=***&x=1"],
  ])("%s is shown without its password", (url, shown) => {
    expect(withoutPassword(url)).toBe(shown);
  });
});

describe("a database that cannot be used", () => {
  test("is told with the setting that is wrong, and never with a password", async () => {
    const directory = await mkdtemp(join(tmpdir(), "agentfense-password-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    const passwords = join(directory, "file");
    await writeFile(passwords, "geheim\n");
    const refusal = async (database: string, database_password_file = ""): Promise<string> => {
      const opening = openStore({ db_path: "", database, database_password_file });
      return await opening.then(
        () => "it opened",
        (error: unknown) => inspect(error, { depth: 5 }),
      );
    };
    const refusals = [
      [await refusal("postgres://ann:geheim@127.0.0.1:1/app"), "ECONNREFUSED"],
      [await refusal("postgres://ann@127.0.0.1:1/app", passwords), "ECONNREFUSED"],
      [await refusal("postgres://ann:geheim@db/app?sslmode=prefer"), "sslmode must be one of"],
      [
        await refusal("postgres://ann:geheim@localhost:1/app?sslmode=require&sslrootcert=/no.pem"),
        "sslrootcert: ENOENT",
      ],
      [await refusal("postgres://ann:geheim@db/app", "/nowhere"), "storage.database_password_file: ENOENT"],
      [await refusal(database().postgres.url("nowhere")), 'database "nowhere" does not exist'],
    ] as const;
    for (const [text, reason] of refusals) {
      expect(text).toContain("storage.database: postgres://");
      expect(text).toContain(reason);
      expect(text).not.toContain("geheim");
    }
  });
});
