import { mkdir } from "node:fs/promises";
import type { KnownCodebase } from "../../isolation/codebase/removal.ts";
import { CodebaseDisk } from "../../isolation/jobs/codebase-disk.ts";
import type { CodebaseLayers, Codebases } from "./api.ts";
import { Changer } from "./changer.ts";
import { changingCalls } from "./changing.ts";
import { Heads } from "./heads.ts";
import { codebaseLayers } from "./layers.ts";
import { type CodebasesOptions, DEFAULT_RETENTION, type Parts } from "./parts.ts";
import { NO_LIMITS, Quotas } from "./quotas.ts";
import { readingCalls } from "./reading.ts";
import { registryCalls } from "./registry.ts";
import { VersionRetention } from "./retention.ts";
import { Snapshots } from "./snapshots.ts";

/** The codebases of this server. What was under way when the last one died is finished, and what it left is gone. */
export async function openCodebases(options: CodebasesOptions): Promise<Codebases & CodebaseLayers & AsyncDisposable> {
  const { store, directory, jobs, audit } = options;
  const log = options.log ?? (() => {});
  const isNew = (await mkdir(directory, { recursive: true, mode: 0o700 })) !== undefined;
  await using undo = new AsyncDisposableStack();
  const disk = undo.use(CodebaseDisk.open(directory, jobs));
  const heads = undo.use(new Heads());
  const quotas = new Quotas({ ...NO_LIMITS, ...options.limits }, store);
  const clock = options.clock ?? { now: () => Date.now() };
  const retention = new VersionRetention({ store, disk, keep: { ...DEFAULT_RETENTION, ...options.retention }, log });
  const own = { store, disk, heads, quotas, clock, log };
  const changer = new Changer({ ...own, retention });
  const snapshots = new Snapshots(own);
  const parts: Parts = { ...own, changer, snapshots, record: (entry) => audit?.record(entry) };

  const unfinished = await changer.rollForward();
  await cleanUp(parts, retention, { unfinished, isNew });

  const resources = undo.move();
  return {
    ...registryCalls(parts),
    ...readingCalls(parts),
    ...changingCalls(parts),
    ...codebaseLayers(parts),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

const PAGE = 1000;

/** The retention may be another than it was, and a change may have been the last thing the server did. */
async function cleanUp(
  { store, disk, log }: Parts,
  retention: VersionRetention,
  { unfinished, isNew }: { readonly unfinished: readonly string[]; readonly isNew: boolean },
): Promise<void> {
  const known: KnownCodebase[] = [];
  for (let after: readonly [number, string] | undefined; ; ) {
    const page = await store.listCodebases({ after, limit: PAGE });
    for (const { id } of page) known.push({ id, oldest: await retention.apply(id) });
    const last = page.at(-1);
    if (page.length < PAGE || last === undefined) break;
    after = [last.createdAtMs, last.id];
  }
  if (isNew && known.length === 0) return;
  for (const codebaseId of await disk.clean(known, unfinished)) {
    log({ level: "error", message: "the directory of a codebase is gone", codebaseId });
  }
}
