import type { MountThread } from "./mount-thread.ts";

/** So many operations in a second weigh as much as a mount that asks for nothing. */
const OPERATIONS_OF_A_MOUNT = 1000;
/** The pace of a thread is measured over at least this long. */
const SHORTEST_SAMPLE_MS = 1000;

/** A place for a mount on a mount thread. */
export interface MountThreadPlace {
  readonly thread: MountThread;
  /** The mount is gone. */
  leave(): void;
}

/**
 * The mount threads of a host. One starts with the host, so that the first mount finds it; another starts when a mount comes and
 * every one has something to serve already, up to the limit. From then on a mount goes to the thread with the least load.
 */
export class MountThreadPool {
  readonly #limit: number;
  readonly #start: () => Promise<MountThread>;
  readonly #members: Member[] = [];

  constructor(limit: number, start: () => Promise<MountThread>) {
    this.#limit = limit;
    this.#start = start;
  }

  /** All threads that have started, those that died included. */
  get threads(): MountThread[] {
    return this.#members.flatMap(({ thread }) => thread ?? []);
  }

  /** Starts the first thread. */
  async open(): Promise<void> {
    await this.#grow().started;
  }

  /** Has taken effect when it returns, before the thread is there: of two mounts at once the second goes elsewhere. */
  async take(): Promise<MountThreadPlace> {
    const alive = this.#members.filter((member) => member.isAlive);
    const load = new Map(alive.map((member) => [member, member.load()]));
    let member = alive.toSorted((a, b) => load.get(a)! - load.get(b)!)[0];
    const isFree = alive.some(({ mounts }) => mounts === 0);
    if (member === undefined || (!isFree && alive.length < this.#limit)) member = this.#grow();
    const place = member;
    place.mounts += 1;
    try {
      return { thread: await place.started, leave: () => (place.mounts -= 1) };
    } catch (error) {
      place.mounts -= 1;
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#members.map(({ started }) => started));
    await Promise.all(this.threads.map((thread) => thread.stop()));
  }

  #grow(): Member {
    const member = new Member(this.#start());
    this.#members.push(member);
    member.started.catch(() => this.#members.splice(this.#members.indexOf(member), 1));
    return member;
  }
}

class Member {
  readonly started: Promise<MountThread>;
  thread: MountThread | undefined;
  mounts = 0;
  #sampledAtMs = performance.now();
  #operations = 0;

  constructor(started: Promise<MountThread>) {
    this.started = started.then((thread) => {
      this.thread = thread;
      return thread;
    });
  }

  get isAlive(): boolean {
    return this.thread?.alive ?? true;
  }

  /** The mounts, and what was asked of them each second since the load was last looked at. */
  load(): number {
    const operations = this.thread?.counters.requests.reduce((sum, count) => sum + count, 0) ?? 0;
    const elapsedMs = performance.now() - this.#sampledAtMs;
    const perSecond = ((operations - this.#operations) * 1000) / Math.max(elapsedMs, SHORTEST_SAMPLE_MS);
    if (elapsedMs >= SHORTEST_SAMPLE_MS) {
      this.#operations = operations;
      this.#sampledAtMs += elapsedMs;
    }
    return this.mounts + perSecond / OPERATIONS_OF_A_MOUNT;
  }
}
